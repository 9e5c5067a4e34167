package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is one type-checked package of the module, without its tests and
// without generated files.
type source struct {
	path  string // below the module, "coordinator/txn"
	fset  *token.FileSet
	files map[string]*ast.File // by base name
	lines map[string]int       // by base name
	info  *types.Info
	types *types.Package
}

// listed is the part of `go list -json` that this program reads.
type listed struct {
	ImportPath, Dir, Export string
	Module                  *struct{ Path string }
	GoFiles, CgoFiles       []string
	DepOnly                 bool
}

// load type-checks the packages that the patterns name, from their sources and
// from the export data of what they import. Packages with cgo files are left
// out of the type-checked part: they have lines only.
func load(root string, patterns ...string) ([]*source, error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,Module,GoFiles,CgoFiles,DepOnly"}, patterns...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	exports := map[string]string{}
	var wanted []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			wanted = append(wanted, p)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var all []*source
	for _, p := range wanted {
		s, err := check(fset, imports, p)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// check parses and type-checks one package.
func check(fset *token.FileSet, imports types.Importer, p listed) (*source, error) {
	s := &source{
		path: strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/"), fset: fset,
		files: map[string]*ast.File{}, lines: map[string]int{},
		info: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}},
	}
	var parsed []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
		if !ast.IsGenerated(file) {
			s.files[name], s.lines[name] = file, bytes.Count(text, []byte("\n"))
		}
	}
	if len(p.CgoFiles) > 0 {
		s.files = nil
		return s, nil
	}
	config := types.Config{Importer: imports}
	var err error
	if s.types, err = config.Check(p.ImportPath, fset, parsed, s.info); err != nil {
		return nil, fmt.Errorf("type-check %s: %w", p.ImportPath, err)
	}
	return s, nil
}
