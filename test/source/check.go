package source

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"path"
	"sync"
)

// Checked is one type-checked package of the module, without its tests.
type Checked struct {
	Folder string // below the root
	Files  []*File
	Types  *types.Package
	Info   *types.Info
}

// Check type-checks the packages of the module from their sources, dependencies
// first, without tests. All packages share their objects: a use in a package names
// the very object of the declaring package. Packages outside the module come from
// the compiler's export data; `go list` makes missing export data.
func (t *Tree) Check() ([]*Checked, error) { return t.check() }

func (t *Tree) checkAll() ([]*Checked, error) {
	listed, err := list(t.Root, nil, "ImportPath,GoFiles,CgoFiles,DepOnly,Error,Export", "-e", "-export", "-deps", "./...")
	if err != nil {
		return nil, err
	}
	files := map[string]*File{}
	for _, f := range t.Files {
		files[f.Path] = f
	}
	c := &checker{tree: t, exports: map[string]string{}, jobs: map[string]*job{}}
	var own []*job
	for _, p := range listed {
		c.exports[p.ImportPath] = p.Export
		folder, local := t.Local(p.ImportPath)
		if !local || p.DepOnly {
			continue
		}
		if p.Error != nil {
			return nil, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		j := &job{of: p, checked: &Checked{Folder: folder}, done: make(chan struct{})}
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			f := files[path.Join(folder, name)]
			if f == nil {
				return nil, fmt.Errorf("%s: %s was not parsed: check a whole tree", p.ImportPath, name)
			}
			j.checked.Files = append(j.checked.Files, f)
		}
		if len(j.checked.Files) > 0 {
			own = append(own, j)
			c.jobs[p.ImportPath] = j
		}
	}
	c.outside = importer.ForCompiler(t.Set, "gc", c.open)
	// The order of go list is the order of imports, so the job that waits longest
	// for another never waits for a job without a worker.
	if err := inParallel(len(own), func(i int) error { return c.check(own[i]) }); err != nil {
		return nil, err
	}
	var all []*Checked
	for _, j := range own {
		all = append(all, j.checked)
	}
	return all, nil
}

// job is the check of one package.
type job struct {
	of      *Package
	checked *Checked
	err     error
	done    chan struct{} // closed when checked and err are final
}

// checker imports for the type-checker.
type checker struct {
	tree    *Tree
	exports map[string]string // by import path
	jobs    map[string]*job   // by import path, of the module's packages

	mu      sync.Mutex
	outside types.Importer
}

func (c *checker) open(importPath string) (io.ReadCloser, error) {
	if c.exports[importPath] == "" {
		return nil, fmt.Errorf("no export data of %s", importPath)
	}
	return os.Open(c.exports[importPath])
}

// Import returns a package of the module once its job is done, and another from
// its export data.
func (c *checker) Import(importPath string) (*types.Package, error) {
	if j := c.jobs[importPath]; j != nil {
		<-j.done
		return j.checked.Types, j.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outside.Import(importPath)
}

func (c *checker) check(j *job) error {
	defer close(j.done)
	var syntax []*ast.File
	for _, f := range j.checked.Files {
		syntax = append(syntax, f.Syntax)
	}
	j.checked.Info = &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
	}
	config := types.Config{Importer: c, FakeImportC: true}
	j.checked.Types, j.err = config.Check(j.of.ImportPath, c.tree.Set, syntax, j.checked.Info)
	if j.err != nil {
		j.err = fmt.Errorf("type-check %s: %w", j.of.ImportPath, j.err)
	}
	return j.err
}
