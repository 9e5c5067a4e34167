package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestModulesOfThePrograms: SECURITY.md says how many modules of third parties each
// program is made of.
func TestModulesOfThePrograms(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `(muster[a-z-]*)` \\| (\\d+) \\|$").FindAllStringSubmatch(read(t, filepath.Join(root, "SECURITY.md")), -1)
	if len(rows) < 5 {
		t.Fatalf("SECURITY.md has %d rows of programs, want 5", len(rows))
	}
	for _, m := range rows {
		t.Run(m[1], func(t *testing.T) {
			t.Parallel()
			list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/"+m[1])
			list.Dir = root
			output, err := list.Output()
			if err != nil {
				t.Fatalf("%v: %v", list, err)
			}
			modules := map[string]bool{}
			for _, path := range strings.Fields(string(output)) {
				modules[path] = true
			}
			if got := len(modules); m[2] != strconv.Itoa(got) {
				t.Errorf("SECURITY.md says %s of %s: write %d, and say why a module has come in the commit", m[2], m[1], got)
			}
		})
	}
}
