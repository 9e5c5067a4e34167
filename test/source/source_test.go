package source

import (
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written is a module with these files.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var sample = map[string]string{
	"go.mod":             "module example.org/sample\n\ngo 1.26\n",
	"top.go":             "package sample\n\nimport \"example.org/sample/low\"\n\nvar Kept = low.Value.N\n",
	"top_test.go":        "package sample\n\nfunc broken() { undefined() }\n",
	"low/low.go":         "package low\n\nimport \"strings\"\n\ntype T struct{ N int }\n\nvar Value = T{N: strings.Count(\"a\", \"a\")}\n",
	"low/other.go":       "//go:build !linux\n\npackage low\n\nvar Value = T{}\n",
	"low/testdata/no.go": "package no\n",
	".hidden/no.go":      "package no\n",
	"nested/go.mod":      "module example.org/nested\n\ngo 1.26\n",
	"nested/main.go":     "package main\n\nfunc main() {}\n",
}

func TestParseFindsTheFilesOfTheModuleAndOfNestedOnes(t *testing.T) {
	root := written(t, sample)
	for name, c := range map[string]struct {
		wanted func(string) bool
		want   []string
	}{
		"all": {nil, []string{"low/low.go", "low/other.go", "nested/main.go", "top.go", "top_test.go"}},
		"those that the caller wants": {
			func(path string) bool { return strings.HasPrefix(path, "low/") }, []string{"low/low.go", "low/other.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := Parse(root, c.wanted)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range tree.Files {
				got = append(got, f.Path)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if low := tree.In("low"); len(low) != 2 || low[0].Lines != 7 || low[0].Name() != "low.go" || low[0].IsTest() {
				t.Errorf("folder low: %+v, want low.go with 7 lines and other.go", low)
			}
		})
	}
}

func TestCheckSharesTheObjectsOfPackages(t *testing.T) {
	tree, err := Parse(written(t, sample), nil)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := tree.Check()
	if err != nil {
		t.Fatal(err)
	}
	if len(checked) != 2 || checked[0].Folder != "low" || checked[1].Folder != "." {
		t.Fatalf("checked %d packages, want low and its user", len(checked))
	}
	value := checked[0].Types.Scope().Lookup("Value")
	used := false
	for id, of := range checked[1].Info.Uses {
		used = used || id.Name == "Value" && of == value
	}
	if !used {
		t.Error("the package of the module's folder uses another object than low's Value")
	}
	if kept := checked[1].Types.Scope().Lookup("Kept"); !types.Identical(kept.Type(), types.Typ[types.Int]) {
		t.Errorf("Kept is %v, want int", kept.Type())
	}
}

func TestCodeThatDoesNotCompileIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"a file that is no Go":     {"low/low.go", "no Go\n", "low.go:1:1"},
		"a use of nothing":         {"low/low.go", "package low\n\nvar Value = nothing\n", "undefined: nothing"},
		"an import of nothing":     {"low/low.go", "package low\n\nimport _ \"example.org/sample/none\"\n", "example.org/sample/none"},
		"a use in another package": {"low/low.go", "package low\n\nvar Value = 1\n", "low.Value.N undefined"},
	} {
		t.Run(name, func(t *testing.T) {
			root := written(t, sample)
			if err := os.WriteFile(filepath.Join(root, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			tree, err := Parse(root, nil)
			if err == nil {
				_, err = tree.Check()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestNeedsAreTheImportsOfImports(t *testing.T) {
	tree, err := Parse(written(t, sample), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := tree.Packages()
	if err != nil {
		t.Fatal(err)
	}
	needs := Needs(all, "example.org/sample")
	for _, want := range []string{"example.org/sample/low", "strings", "unsafe"} {
		if n := len(slices.DeleteFunc(slices.Clone(needs), func(s string) bool { return s != want })); n != 1 {
			t.Errorf("%s stands %d times in the needs %v, want once", want, n, needs)
		}
	}
}
