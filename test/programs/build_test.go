package programs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterd/muster/test/programs"
)

// TestAProgramIsBuiltOnceForAllTests compares the files of two builds: the second
// build finds the program up to date, so both are the same file.
func TestAProgramIsBuiltOnceForAllTests(t *testing.T) {
	root, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, ".build"), 0o755); err != nil {
		t.Fatal(err)
	}
	build := func() string {
		t.Helper()
		dir, err := os.MkdirTemp(filepath.Join(root, ".build"), "build-test-") // on the file system of the shared folder
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := programs.Build(dir, "muster-shim"); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "muster-shim")
	}
	stat := func(path string) os.FileInfo {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first, second := stat(build()), stat(build())
	if !os.SameFile(first, second) {
		t.Error("two builds of unchanged sources are two files, want one: does `go build -o` still compare the build ID of the file that is there?")
	}
	if first.Mode().Perm()&0o111 == 0 {
		t.Errorf("the program has mode %v, want an executable one", first.Mode())
	}
	if err := programs.Build(t.TempDir(), "absent"); err == nil {
		t.Error("a program without sources is built")
	}
}
