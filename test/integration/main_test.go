package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterd/muster/test/programs"
)

func TestMain(m *testing.M) {
	code, err := programs.Run(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// example is the path of a file of examples/.
func example(t *testing.T, name string) string {
	t.Helper()
	root, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "examples", name)
}
