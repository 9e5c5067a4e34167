package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/musterd/muster/test/house/calls"
	"github.com/musterd/muster/test/source"
)

// methodsPerType counts the ways to change or ask a type: the methods, the promoted
// methods of embedded types of the module, and the functions and closures of the
// package that write the type and have a parameter of the type or capture a variable
// of the type. Types of a package that write each other count together, under the
// name of the type with the most methods. Files without type-check (tests, nested
// modules, other systems) count with their declared methods alone.
func (c *code) methodsPerType() []figure {
	counts := map[*types.Named]int{}
	own := c.ownPackages()
	var order []*types.Named
	for _, p := range c.checked {
		for _, named := range declaredTypes(p) {
			order = append(order, named)
			counts[named] = methodsOf(named, own)
		}
	}
	joined := c.writeEachOther()
	for named, n := range c.writersOutside(joined) {
		counts[named] += n
	}
	sums, names := map[*types.Named]int{}, map[*types.Named][]*types.Named{}
	for _, named := range order {
		root := joined.root(named)
		sums[root] += counts[named]
		names[root] = append(names[root], named)
	}
	var out []figure
	for _, named := range order {
		of := names[named]
		if len(of) == 0 {
			continue
		}
		slices.SortStableFunc(of, func(a, b *types.Named) int { return cmp.Compare(counts[b], counts[a]) })
		f := figure{kind: "type", of: c.nameOf(of[0]), value: sums[named]}
		if len(of) > 1 {
			f.note = "with " + namesOf(of[1:]) + ", as they write each other"
		}
		out = append(out, f)
	}
	return greatestOf(append(out, c.methodsUnchecked()...))
}

// greatestOf keeps the greatest figure of each name: types in functions may share
// theirs.
func greatestOf(figures []figure) []figure {
	slices.SortFunc(figures, byValue)
	seen := map[string]bool{}
	return slices.DeleteFunc(figures, func(f figure) bool {
		again := seen[f.of]
		seen[f.of] = true
		return again
	})
}

func namesOf(of []*types.Named) string {
	var names []string
	for _, named := range of {
		names = append(names, named.Obj().Name())
	}
	return strings.Join(names, ", ")
}

// nameOf is a type's name behind its folder.
func (c *code) nameOf(named *types.Named) string {
	folder, _ := c.tree.Local(named.Obj().Pkg().Path())
	return folder + "." + named.Obj().Name()
}

func (c *code) ownPackages() map[*types.Package]bool {
	own := map[*types.Package]bool{}
	for _, p := range c.checked {
		own[p.Types] = true
	}
	return own
}

// declaredTypes returns the types of a package's files, those in functions too, in
// the order of files.
func declaredTypes(p *source.Checked) []*types.Named {
	var all []*types.Named
	for _, f := range p.Files {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if named, ok := p.Info.Defs[spec.Name].Type().(*types.Named); ok && named.Obj() == p.Info.Defs[spec.Name] {
					all = append(all, named)
				}
			}
			return true
		})
	}
	return all
}

// methodsOf counts a type's methods, with the promoted methods of embedded types of
// the module.
func methodsOf(named *types.Named, own map[*types.Package]bool) int {
	if types.IsInterface(named) {
		return named.Underlying().(*types.Interface).NumMethods()
	}
	set, n := types.NewMethodSet(types.NewPointer(named)), 0
	for i := range set.Len() {
		if own[set.At(i).Obj().Pkg()] {
			n++
		}
	}
	return n
}

// writersOutside counts, by type, the functions and closures of the package that
// write the type, without the methods of the type and of types joined with it.
func (c *code) writersOutside(joined *union) map[*types.Named]int {
	type pair struct {
		by ast.Node
		of *types.Named
	}
	seen, counts := map[pair]bool{}, map[*types.Named]int{}
	for _, w := range c.writes {
		if w.of.Obj().Pkg() != w.in.Types {
			continue
		}
		by := w.within[len(w.within)-1]
		if seen[pair{by, w.of}] {
			continue
		}
		seen[pair{by, w.of}] = true
		if isGiven(w.in, by, w.of) && !isMethodOf(w.by, by, joined, w.of) {
			counts[w.of]++
		}
	}
	return counts
}

// isMethodOf reports whether a function is a method of a type or of a joined type.
func isMethodOf(f *types.Func, at ast.Node, joined *union, of *types.Named) bool {
	_, declared := at.(*ast.FuncDecl)
	recv := f.Signature().Recv()
	if !declared || recv == nil {
		return false
	}
	named := calls.Named(recv.Type())
	return named != nil && joined.root(named) == joined.root(of)
}

// isGiven reports whether a function has a parameter of the type, or a closure
// captures a variable of the type.
func isGiven(p *source.Checked, by ast.Node, of *types.Named) bool {
	is := func(v types.Object) bool { return v != nil && v.Type() != nil && calls.Named(v.Type()) == of }
	signature := func(params *ast.FieldList) bool {
		return params != nil && slices.ContainsFunc(params.List, func(f *ast.Field) bool { return calls.Named(p.Info.TypeOf(f.Type)) == of })
	}
	switch by := by.(type) {
	case *ast.FuncDecl:
		return signature(by.Type.Params)
	case *ast.FuncLit:
		captures := false
		ast.Inspect(by.Body, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if v, isVar := p.Info.Uses[id].(*types.Var); ok && isVar && !v.IsField() && is(v) && (v.Pos() < by.Pos() || v.Pos() >= by.End()) {
				captures = true
			}
			return !captures
		})
		return captures || signature(by.Type.Params)
	}
	return false
}

// writeEachOther joins two types of a package if methods of each, or closures in
// these methods, write the other.
func (c *code) writeEachOther() *union {
	writes := map[[2]*types.Named]bool{}
	for _, w := range c.writes {
		recv := w.by.Signature().Recv()
		if recv == nil || w.of.Obj().Pkg() != w.in.Types {
			continue
		}
		if from := calls.Named(recv.Type()); from != nil && from != w.of {
			writes[[2]*types.Named{from, w.of}] = true
		}
	}
	joined := &union{}
	for pair := range writes {
		if writes[[2]*types.Named{pair[1], pair[0]}] {
			joined.join(pair[0], pair[1])
		}
	}
	return joined
}

// union is sets of joined types.
type union struct{ up map[*types.Named]*types.Named }

func (u *union) root(t *types.Named) *types.Named {
	for u.up[t] != nil {
		t = u.up[t]
	}
	return t
}

func (u *union) join(a, b *types.Named) {
	if a, b = u.root(a), u.root(b); a != b {
		if u.up == nil {
			u.up = map[*types.Named]*types.Named{}
		}
		u.up[a] = b
	}
}

// methodsUnchecked counts the methods that the files of tests, of nested modules and
// for other systems declare, by type.
func (c *code) methodsUnchecked() []figure {
	checked := map[*source.File]bool{}
	for _, p := range c.checked {
		for _, f := range p.Files {
			checked[f] = true
		}
	}
	counts := map[string]int{}
	for _, f := range c.tree.Files {
		if checked[f] {
			continue
		}
		for _, d := range f.Syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil && len(d.Recv.List) == 1 {
				counts[fmt.Sprintf("%s.%s", unit(f), receiver(d.Recv.List[0].Type))]++
			}
		}
	}
	var out []figure
	for of, n := range counts {
		out = append(out, figure{kind: "type", of: of, value: n})
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
