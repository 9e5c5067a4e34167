package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// writersOf names the files of the package that write a struct, ascending. A file
// writes it that assigns a field, a part of a field that is stored in the struct
// itself, or an element of a map or slice in a field; by =, op=, ++, delete, clear
// or copy. The fields of what a field points to are another struct's. Composite
// literals write nothing: they make a value.
func (s *code) writersOf(name string) []string {
	files := map[string]bool{}
	for base, file := range s.files {
		note := func(e ast.Expr) {
			if s.isPartOf(e, name) {
				files[base] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						note(e)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					note(n.Key)
					note(n.Value)
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.Ident)
				if _, builtin := s.info.Uses[f].(*types.Builtin); ok && builtin && len(n.Args) > 0 && slices.Contains([]string{"delete", "clear", "copy"}, f.Name) {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(files))
}

// isPartOf reports whether an expression is memory of a struct of this package,
// or an element of a map or slice of its fields.
func (s *code) isPartOf(e ast.Expr, name string) bool {
	for {
		switch at := e.(type) {
		case *ast.IndexExpr:
			e = at.X
		case *ast.ParenExpr:
			e = at.X
		case *ast.SelectorExpr:
			selection := s.info.Selections[at]
			if selection == nil || selection.Kind() != types.FieldVal {
				return false
			}
			if s.passes(selection, name) {
				return true
			}
			if _, pointer := s.info.TypeOf(at.X).Underlying().(*types.Pointer); pointer {
				return false
			}
			e = at.X
		default:
			return false
		}
	}
}

// passes reports whether a selected field is a field of the struct, by itself or
// through what the struct embeds by value.
func (s *code) passes(selection *types.Selection, name string) bool {
	at, inside := selection.Recv(), false
	for _, i := range selection.Index() {
		if p, ok := at.Underlying().(*types.Pointer); ok {
			at, inside = p.Elem(), false
		}
		if named, ok := types.Unalias(at).(*types.Named); ok && named.Obj().Pkg() == s.types && named.Obj().Name() == name {
			inside = true
		}
		fields, ok := at.Underlying().(*types.Struct)
		if !ok {
			return false
		}
		at = fields.Field(i).Type()
	}
	return inside
}
