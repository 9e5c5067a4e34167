package layers_test

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/musterd/muster/test/source"
)

// tree is the code of the module that is not a test's.
var tree = sync.OnceValues(func() (*source.Tree, error) {
	return source.Parse(root, func(path string) bool {
		return !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, testTree)
	})
})

// uses calls f for each name that the file takes from the package, such as
// Now of time.
func uses(file *source.File, importPath string, f func(name string, at ast.Node)) {
	local := ""
	for _, spec := range file.Syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != importPath {
			continue
		}
		local = path.Base(importPath)
		if spec.Name != nil {
			local = spec.Name.Name
		}
	}
	if local == "" || local == "_" {
		return
	}
	ast.Inspect(file.Syntax, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == local {
				f(selector.Sel.Name, selector)
			}
		}
		return true
	})
}

// production returns the files of the packages in the table.
func production(t *testing.T) (*source.Tree, []*source.File) {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	return all, slices.DeleteFunc(slices.Clone(all.Files), func(f *source.File) bool { _, known := table[f.Folder]; return !known })
}

func TestVocabularyAndDecisionsActOnNothing(t *testing.T) {
	tree, files := production(t)
	for _, s := range files {
		if table[s.Folder].layer > decision {
			continue
		}
		for from, names := range impureCalls {
			uses(s, from, func(name string, at ast.Node) {
				if slices.Contains(names, name) {
					t.Errorf("%s:%d: %s.%s: L0 and L1 read no clock and write nothing; take the value as an argument", s.Path, tree.Line(at), from, name)
				}
			})
		}
		for from, prefix := range pureExceptions[s.Folder] {
			uses(s, from, func(name string, at ast.Node) {
				if !strings.HasPrefix(name, prefix) {
					t.Errorf("%s:%d: %s.%s: only %s… may be used here", s.Path, tree.Line(at), from, name, prefix)
				}
			})
		}
		ast.Inspect(s.Syntax, func(n ast.Node) bool {
			if statement, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s:%d: starts a goroutine; L0 and L1 have none", s.Path, tree.Line(statement))
			}
			return true
		})
	}
}

func TestOnlyCommandsReadTheEnvironment(t *testing.T) {
	tree, files := production(t)
	for _, s := range files {
		if below(s.Folder, "cmd") || s.Folder == "sdk/allocator/example" { // a program too, as the API's design has it
			continue
		}
		for from, names := range environment {
			uses(s, from, func(name string, at ast.Node) {
				if slices.Contains(names, name) {
					t.Errorf("%s:%d: %s.%s: only cmd/ reads the environment; take the value as an argument", s.Path, tree.Line(at), from, name)
				}
			})
		}
	}
}

func TestNoPackageHasAnInitFunction(t *testing.T) {
	tree, files := production(t)
	for _, s := range files {
		if below(s.Folder, generatedTree) {
			continue
		}
		for _, d := range s.Syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: func init: set up what is needed where it is made", s.Path, tree.Line(f))
			}
		}
	}
}
