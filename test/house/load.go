package main

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/musterd/muster/test/source"
)

// code is one type-checked package of the module, without its tests and without
// generated files.
type code struct {
	path  string // below the module, "coordinator/txn"
	fset  *token.FileSet
	files map[string]*ast.File // by base name
	lines map[string]int       // by base name
	info  *types.Info
	types *types.Package
}

// load type-checks the packages of a module.
func load(root string) ([]*code, error) {
	tree, err := source.Parse(root, nil)
	if err != nil {
		return nil, err
	}
	checked, err := tree.Check()
	if err != nil {
		return nil, err
	}
	var all []*code
	for _, p := range checked {
		s := &code{path: p.Folder, fset: tree.Set, files: map[string]*ast.File{}, lines: map[string]int{}, info: p.Info, types: p.Types}
		for _, f := range p.Files {
			if !ast.IsGenerated(f.Syntax) {
				s.files[f.Name()], s.lines[f.Name()] = f.Syntax, f.Lines
			}
		}
		all = append(all, s)
	}
	return all, nil
}
