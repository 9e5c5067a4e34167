package shim_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterd/muster/agent/shim"
)

func TestTheProgramOfAShimIsBesideTheAgent(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		own  bool
	}{
		"a program":        {func(path string) error { return os.WriteFile(path, nil, 0o755) }, true},
		"nothing":          {func(string) error { return nil }, false},
		"no program":       {func(path string) error { return os.WriteFile(path, nil, 0o644) }, false},
		"a folder":         {func(path string) error { return os.Mkdir(path, 0o755) }, false},
		"a link to itself": {func(path string) error { return os.Symlink(path, path) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			agent, own := filepath.Join(dir, "muster-agent"), filepath.Join(dir, shim.Name)
			if err := c.make(own); err != nil {
				t.Fatal(err)
			}
			want := agent
			if c.own {
				want = own
			}
			if got := shim.Program(agent); got != want {
				t.Errorf("program %s, want %s", got, want)
			}
		})
	}
}
