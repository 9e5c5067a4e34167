package main

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/musterd/muster/test/house/calls"
	"github.com/musterd/muster/test/source"
)

// write is a statement that changes a struct in memory: an assignment to a field, to
// a part of a field inside the struct, to an element of a map, slice or array in a
// field, or to the whole struct through a pointer; by =, op=, ++, a loop's variable,
// delete, clear or copy. Behind a pointer in a field another struct begins. A
// composite literal makes a value and is no write. An assignment to a part of a local
// variable of a struct type is no write either.
type write struct {
	of     *types.Named
	field  *types.Var // nil for the whole struct
	in     *source.Checked
	within []ast.Node // the function's declaration, then the closures around the statement
	by     *types.Func
	at     ast.Expr
}

// writesOf finds the writes of all packages, in the order of files.
func writesOf(checked []*source.Checked) []write {
	var all []write
	for _, p := range checked {
		for _, f := range p.Files {
			for _, d := range f.Syntax.Decls {
				decl, ok := d.(*ast.FuncDecl)
				if !ok || decl.Body == nil {
					continue
				}
				w := &writeFinder{p: p, by: p.Info.Defs[decl.Name].(*types.Func), within: []ast.Node{decl}}
				w.find(decl.Body)
				all = append(all, w.found...)
			}
		}
	}
	return all
}

// writeFinder finds the writes of one function.
type writeFinder struct {
	p      *source.Checked
	by     *types.Func
	within []ast.Node
	found  []write
}

func (w *writeFinder) find(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			outer := w.within
			w.within = append(outer[:len(outer):len(outer)], n)
			w.find(n.Body)
			w.within = outer
			return false
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					w.note(e)
				}
			}
		case *ast.IncDecStmt:
			w.note(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				w.note(n.Key)
				w.note(n.Value)
			}
		case *ast.CallExpr:
			if w.changesFirst(n) {
				w.note(n.Args[0])
			}
		}
		return true
	})
}

// changesFirst reports whether a call of a builtin function changes the first
// argument.
func (w *writeFinder) changesFirst(n *ast.CallExpr) bool {
	f, ok := ast.Unparen(n.Fun).(*ast.Ident)
	if !ok || len(n.Args) == 0 {
		return false
	}
	_, builtin := w.p.Info.Uses[f].(*types.Builtin)
	return builtin && (f.Name == "delete" || f.Name == "clear" || f.Name == "copy")
}

// note adds a write of each struct whose memory an expression names.
func (w *writeFinder) note(e ast.Expr) {
	if e == nil || w.isLocal(e) {
		return
	}
	at := e
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			w.add(w.p.Info.TypeOf(x), nil, at)
			return
		case *ast.SelectorExpr:
			selection := w.p.Info.Selections[x]
			if selection == nil || selection.Kind() != types.FieldVal {
				return
			}
			if w.passes(selection, at) {
				return
			}
			e = x.X
		default:
			return
		}
	}
}

// passes adds the structs on the way of a selection, and reports whether the way
// begins at a pointer.
func (w *writeFinder) passes(selection *types.Selection, at ast.Expr) bool {
	type step struct {
		of    types.Type
		field *types.Var
	}
	var steps []step // since the last pointer
	t, pointer := selection.Recv(), false
	for _, i := range selection.Index() {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t, pointer, steps = p.Elem(), true, nil
		}
		fields, ok := t.Underlying().(*types.Struct)
		if !ok {
			return true
		}
		steps = append(steps, step{t, fields.Field(i)})
		t = fields.Field(i).Type()
	}
	for _, s := range steps {
		w.add(s.of, s.field, at)
	}
	return pointer
}

func (w *writeFinder) add(t types.Type, field *types.Var, at ast.Expr) {
	named := calls.Named(t)
	if named == nil {
		return
	}
	if _, ok := named.Underlying().(*types.Struct); !ok {
		return
	}
	if field != nil {
		field = field.Origin()
	}
	w.found = append(w.found, write{of: named, field: field, in: w.p, within: w.within, by: w.by, at: at})
}

// isLocal reports whether an expression is memory of a local variable itself, with
// no pointer, map or slice between.
func (w *writeFinder) isLocal(e ast.Expr) bool {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			v, ok := w.p.Info.Uses[x].(*types.Var)
			return ok && v.Parent() != nil && v.Parent() != w.p.Types.Scope() && v.Pkg() == w.p.Types
		case *ast.SelectorExpr:
			selection := w.p.Info.Selections[x]
			if selection == nil || selection.Indirect() {
				return false
			}
			e = x.X
		case *ast.IndexExpr:
			if _, array := w.p.Info.TypeOf(x.X).Underlying().(*types.Array); !array {
				return false
			}
			e = x.X
		default:
			return false
		}
	}
}
