package layers_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is one file of the module that is not a test's.
type source struct {
	path string // with slashes, below the module
	pkg  string // its folder
	file *ast.File
	set  *token.FileSet
}

// sources parses every production file once.
var sources = sync.OnceValues(func() ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "testdata", "tools"}, d.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		all = append(all, source{path: below, pkg: path.Dir(below), file: file, set: set})
		return nil
	})
	return all, err
})

// uses calls f for each name that the file takes from the package, such as
// Now of time.
func (s source) uses(importPath string, f func(name string, at int)) {
	local := ""
	for _, spec := range s.file.Imports {
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
	ast.Inspect(s.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == local {
				f(selector.Sel.Name, s.line(selector))
			}
		}
		return true
	})
}

func (s source) line(n ast.Node) int { return s.set.Position(n.Pos()).Line }

// production yields the files of the packages in the table.
func production(t *testing.T) []source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s source) bool { _, known := table[s.pkg]; return !known })
}

func TestVocabularyAndDecisionsActOnNothing(t *testing.T) {
	for _, s := range production(t) {
		if table[s.pkg].layer > decision {
			continue
		}
		for from, names := range impureCalls {
			s.uses(from, func(name string, line int) {
				if slices.Contains(names, name) {
					t.Errorf("%s:%d: %s.%s: L0 and L1 read no clock and write nothing; take the value as an argument", s.path, line, from, name)
				}
			})
		}
		for from, prefix := range pureExceptions[s.pkg] {
			s.uses(from, func(name string, line int) {
				if !strings.HasPrefix(name, prefix) {
					t.Errorf("%s:%d: %s.%s: only %s… may be used here", s.path, line, from, name, prefix)
				}
			})
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if statement, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s:%d: starts a goroutine; L0 and L1 have none", s.path, s.line(statement))
			}
			return true
		})
	}
}

func TestOnlyCommandsReadTheEnvironment(t *testing.T) {
	for _, s := range production(t) {
		if below(s.pkg, "cmd") || s.pkg == "sdk/allocator/example" { // a program too, as the API's design has it
			continue
		}
		for from, names := range environment {
			s.uses(from, func(name string, line int) {
				if slices.Contains(names, name) {
					t.Errorf("%s:%d: %s.%s: only cmd/ reads the environment; take the value as an argument", s.path, line, from, name)
				}
			})
		}
	}
}

func TestNoPackageHasAnInitFunction(t *testing.T) {
	for _, s := range production(t) {
		if below(s.pkg, generatedTree) {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: func init: set up what is needed where it is made", s.path, s.line(f))
			}
		}
	}
}
