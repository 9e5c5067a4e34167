package main

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/musterd/muster/test/source"
)

// settersPerPackage counts the setters of each package: methods of one or two
// statements that only assign parameters and constants to fields of the receiver. A
// step method is named after an event instead, and makes all changes of the event.
func (c *code) settersPerPackage() []figure {
	var out []figure
	for _, p := range c.checked {
		f := figure{kind: "setters", of: p.Folder}
		for _, file := range p.Files {
			for _, d := range file.Syntax.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && isSetter(p, d) {
					f.value++
					f.note = "the last is " + d.Name.Name + " in " + file.Name()
				}
			}
		}
		out = append(out, f)
	}
	return out
}

func isSetter(p *source.Checked, d *ast.FuncDecl) bool {
	if d.Recv == nil || d.Body == nil || len(d.Body.List) == 0 || len(d.Body.List) > 2 {
		return false
	}
	recv := p.Info.Defs[d.Name].(*types.Func).Signature().Recv()
	if _, ok := recv.Type().Underlying().(*types.Pointer); !ok {
		return false
	}
	for _, s := range d.Body.List {
		a, ok := s.(*ast.AssignStmt)
		if !ok || a.Tok != token.ASSIGN {
			return false
		}
		for _, e := range a.Lhs {
			if !isPartOf(p, e, recv) {
				return false
			}
		}
		for _, e := range a.Rhs {
			if !isGivenOrConstant(p, e, recv) {
				return false
			}
		}
	}
	return true
}

// isPartOf reports whether an expression is a field of a variable, or of its fields.
func isPartOf(p *source.Checked, e ast.Expr, of *types.Var) bool {
	s, ok := e.(*ast.SelectorExpr)
	for ok {
		if id, isIdent := ast.Unparen(s.X).(*ast.Ident); isIdent {
			return p.Info.Uses[id] == of
		}
		s, ok = ast.Unparen(s.X).(*ast.SelectorExpr)
	}
	return false
}

// isGivenOrConstant reports whether an expression asks neither the receiver nor any
// function.
func isGivenOrConstant(p *source.Checked, e ast.Expr, recv *types.Var) bool {
	given := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			given = given && p.Info.Uses[n] != recv
		case *ast.CallExpr:
			given = given && p.Info.Types[n.Fun].IsType()
		case *ast.FuncLit:
			given = false
		}
		return given
	})
	return given
}
