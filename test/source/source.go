// Package source reads the module's own Go code for the tests of the code: the
// files as syntax trees (Parse), the packages and their imports (Tree.Packages),
// and the types of the code without tests (Tree.Check). A tree does each step once,
// on all processors, and only on demand.
//
// The package has no rules: test/house, test/layers and test/docs have them.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// File is a Go file.
type File struct {
	Path   string // with slashes, below the tree's root
	Folder string // Path without its last element, "." for the root
	Lines  int
	Syntax *ast.File // with comments, without resolved objects
}

// Name is the file's name in its folder.
func (f *File) Name() string { return path.Base(f.Path) }

// IsTest reports whether the file is compiled for tests alone.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Tree is the Go code of a module, and of the modules nested in its folders.
type Tree struct {
	Root   string // the module's folder
	Module string // the module's path
	Set    *token.FileSet
	Files  []*File // by path

	packages func() ([]*Package, error)
	check    func() ([]*Checked, error)
}

// skipped are the names of folders without code of the project. Hidden folders
// are skipped too.
var skipped = []string{"bin", "testdata", "node_modules"}

// Parse reads the Go files of a module, of nested modules, and for other systems
// too. wanted chooses files by their paths below the root; nil accepts all.
func Parse(root string, wanted func(path string) bool) (*Tree, error) {
	module, err := moduleOf(root)
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: root, Module: module, Set: token.NewFileSet()}
	t.packages, t.check = sync.OnceValues(t.list), sync.OnceValues(t.checkAll)
	if t.Files, err = find(root, wanted); err != nil {
		return nil, err
	}
	if err := inParallel(len(t.Files), func(i int) error { return t.parse(t.Files[i]) }); err != nil {
		return nil, err
	}
	return t, nil
}

// moduleOf reads the module's path from the go.mod of a folder.
func moduleOf(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if module, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(module), nil
		}
	}
	return "", fmt.Errorf("%s has no line \"module …\"", filepath.Join(root, "go.mod"))
}

// find returns the wanted Go files below the root, by path.
func find(root string, wanted func(path string) bool) ([]*File, error) {
	var all []*File
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(skipped, d.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if below = filepath.ToSlash(below); wanted == nil || wanted(below) {
			all = append(all, &File{Path: below, Folder: path.Dir(below)})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	return all, err
}

func (t *Tree) parse(f *File) error {
	name := filepath.Join(t.Root, filepath.FromSlash(f.Path))
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f.Lines = bytes.Count(text, []byte("\n"))
	f.Syntax, err = parser.ParseFile(t.Set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return err
}

// Line is the line of a node in its file.
func (t *Tree) Line(n ast.Node) int { return t.Set.Position(n.Pos()).Line }

// In returns the files of a folder, without the folders in the folder.
func (t *Tree) In(folder string) []*File {
	return slices.DeleteFunc(slices.Clone(t.Files), func(f *File) bool { return f.Folder != folder })
}

// inParallel calls do for 0 to n-1 on all processors, and returns the errors of
// all calls.
func inParallel(n int, do func(int) error) error {
	found := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				found[i] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(found...)
}
