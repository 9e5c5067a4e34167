// Package fresh holds generated files to their source: a test makes the text and
// compares it with the committed file, or writes the file where -rewrite is given.
package fresh

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // defines -rewrite
)

// Rewrites reports whether the test writes files instead of comparing them.
func Rewrites() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// File compares a committed file with its text as it should be. The first line
// that differs is named.
func File(t *testing.T, path, want string) {
	t.Helper()
	if Rewrites() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v; make reference writes it", err)
		return
	}
	got := string(data)
	if got == want {
		return
	}
	is, should := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(is), len(should)) {
		if line(is, i) != line(should, i) {
			t.Errorf("%s is stale, make reference writes it anew: line %d is\n%s\nand should be\n%s", path, i+1, line(is, i), line(should, i))
			return
		}
	}
}

// Only reports files of a folder that nothing generates any more, and removes
// them where -rewrite is given.
func Only(t *testing.T, pattern string, generated map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		switch {
		case generated[filepath.Base(file)]:
		case Rewrites():
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is generated from nothing; make reference removes it", file)
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
