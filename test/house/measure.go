package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
)

// figure is one measured number and the thing it belongs to.
type figure struct {
	value int
	of    string
	note  string
}

// greatest sorts figures by value, descending, then by name, and keeps n.
func greatest(figures []figure, n int) []figure {
	slices.SortFunc(figures, func(a, b figure) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.of, b.of))
	})
	return figures[:min(n, len(figures))]
}

// packageLines counts the lines of each package without tests and generated
// files.
func packageLines(all []*code) []figure {
	var out []figure
	for _, s := range all {
		sum := 0
		for _, n := range s.lines {
			sum += n
		}
		out = append(out, figure{value: sum, of: s.path, note: plural(len(s.lines), "file")})
	}
	return out
}

// methodsPerType counts the methods of each named type, and the files that
// they are in.
func methodsPerType(all []*code) []figure {
	var out []figure
	for _, s := range all {
		methods, files := map[string]int{}, map[string]map[string]bool{}
		for name, file := range s.files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv == nil || len(f.Recv.List) == 0 {
					continue
				}
				of := receiver(f.Recv.List[0].Type)
				methods[of]++
				if files[of] == nil {
					files[of] = map[string]bool{}
				}
				files[of][name] = true
			}
		}
		for of, n := range methods {
			out = append(out, figure{value: n, of: s.path + "." + of, note: plural(len(files[of]), "file")})
		}
	}
	return out
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// circles finds, for each package, the greatest set of files in which each
// file calls functions of each other file, directly or through others of the
// set.
func circles(all []*code) []figure {
	var out []figure
	for _, s := range all {
		calls := map[string]map[string]bool{}
		for name, file := range s.files {
			calls[name] = map[string]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				f, ok := s.info.Uses[id].(*types.Func)
				if !ok || f.Pkg() != s.types {
					return true
				}
				to := filepath.Base(s.fset.Position(f.Origin().Pos()).Filename)
				if s.files[to] != nil && to != name {
					calls[name][to] = true
				}
				return true
			})
		}
		if n := greatestCircle(calls); n > 1 {
			out = append(out, figure{value: n, of: s.path, note: "of " + plural(len(s.files), "file")})
		}
	}
	return out
}

// greatestCircle is the size of the greatest strongly connected component.
func greatestCircle(calls map[string]map[string]bool) int {
	reaches := func(from string) map[string]bool {
		seen, todo := map[string]bool{}, []string{from}
		for len(todo) > 0 {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for to := range calls[at] {
				if !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
		return seen
	}
	reach := map[string]map[string]bool{}
	for name := range calls {
		reach[name] = reaches(name)
	}
	most := 0
	for name := range calls {
		n := 1
		for other := range calls {
			if other != name && reach[name][other] && reach[other][name] {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// leastFields is the number of fields from which a struct counts as state.
const leastFields = 6

// writersPerStruct counts, for each struct of at least leastFields fields, the
// files of its package that assign its fields, or elements of its maps and
// slices. Composite literals do not count: they make a value and change none.
func writersPerStruct(all []*code) []figure {
	var out []figure
	for _, s := range all {
		writers := map[string]map[string]bool{}
		for name, file := range s.files {
			note := func(e ast.Expr) {
				if of := s.stateOf(e); of != "" {
					if writers[of] == nil {
						writers[of] = map[string]bool{}
					}
					writers[of][name] = true
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
				case *ast.CallExpr:
					if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
						note(n.Args[0])
					}
				}
				return true
			})
		}
		for of, files := range writers {
			out = append(out, figure{value: len(files), of: s.path + "." + of})
		}
	}
	return out
}

// stateOf is the struct of this package whose field the expression names, ""
// for none.
func (s *code) stateOf(e ast.Expr) string {
	for {
		switch at := e.(type) {
		case *ast.IndexExpr:
			e = at.X
		case *ast.ParenExpr:
			e = at.X
		case *ast.StarExpr:
			e = at.X
		case *ast.SelectorExpr:
			selection := s.info.Selections[at]
			if selection == nil || selection.Kind() != types.FieldVal {
				return ""
			}
			return s.structOf(selection)
		default:
			return ""
		}
	}
}

// structOf is the name of the struct that declares a selected field. A field
// that is reached through an embedded struct belongs to that one.
func (s *code) structOf(selection *types.Selection) string {
	at := selection.Recv()
	for _, i := range selection.Index() {
		if p, ok := at.Underlying().(*types.Pointer); ok {
			at = p.Elem()
		}
		named, _ := types.Unalias(at).(*types.Named)
		fields, ok := at.Underlying().(*types.Struct)
		if !ok {
			return ""
		}
		if fields.Field(i) == selection.Obj() {
			if named == nil || named.Obj().Pkg() != s.types || fields.NumFields() < leastFields {
				return ""
			}
			return named.Obj().Name()
		}
		at = fields.Field(i).Type()
	}
	return ""
}
