// Package calls finds which functions of a module call which.
//
// The package resolves
//   - a call of a function or method by name;
//   - a call of an interface's method to the methods of all types of the module
//     with this interface (for generic types: with methods of all these names);
//   - a call of a func value to all functions, methods and closures that flow
//     there: through variables, fields, parameters, results, conversions,
//     interfaces, and elements of slices, maps and channels. All structs of a
//     type share a place for each field, all calls of a function share a place
//     for each parameter, and a container shares a place with the elements.
//
// A closure is a function of its own. The function around the closure counts as a
// caller, since the closure's calls are written there.
//
// The package does not read code outside the module. For a func value in an
// argument of such code, the caller counts as the caller of the value; the value
// also flows to the results and to the receiver. Calls from outside code to methods
// of the module (from fmt to String) are missing: no circle goes through them.
//
// The package measures no limits; test/house does.
package calls

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"

	"github.com/musterd/muster/test/source"
)

// Func is a declared function, the initializers of a package's variables, or a
// closure. The body of a loop over a function is a closure too, with this function
// as the caller.
type Func struct {
	Folder string
	Object *types.Func // nil for initializers and closures
	Writer *Func       // the declared function or initializers around a closure, else the Func itself
	Calls  []*Func     // each once, by Index
	Index  int         // in Graph.Funcs
}

// Name is the function's name with its folder and receiver.
func (f *Func) Name() string {
	f = f.Writer
	if f.Object == nil {
		return f.Folder + ".init"
	}
	if recv := f.Object.Signature().Recv(); recv != nil {
		if named := Named(recv.Type()); named != nil {
			return f.Folder + "." + named.Obj().Name() + "." + f.Object.Name()
		}
	}
	return f.Folder + "." + f.Object.Name()
}

// Graph is the functions of a module.
type Graph struct {
	Funcs []*Func // in the order of packages, files and declarations
	of    map[*types.Func]*Func
}

// Of is a function's node, nil for functions outside the module.
func (g *Graph) Of(f *types.Func) *Func { return g.of[f.Origin()] }

// Named is the named type of a value or of a pointer's target, nil for others.
func Named(t types.Type) *types.Named {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, _ := t.(*types.Named)
	if named == nil {
		return nil
	}
	return named.Origin()
}

// Build resolves all calls of these packages.
func Build(checked []*source.Checked) *Graph {
	g := &Graph{of: map[*types.Func]*Func{}}
	flow := newFlow(g, checked)
	type body struct {
		p  *source.Checked
		of *Func
		n  ast.Node
	}
	var bodies []body
	for _, p := range checked {
		var initial *Func
		for _, file := range p.Files {
			for _, d := range file.Syntax.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					object := p.Info.Defs[d.Name].(*types.Func)
					f := g.add(&Func{Folder: p.Folder, Object: object})
					g.of[object] = f
					if d.Body != nil {
						bodies = append(bodies, body{p, f, d})
					}
				case *ast.GenDecl:
					if initial == nil {
						initial = g.add(&Func{Folder: p.Folder})
					}
					bodies = append(bodies, body{p, initial, d})
				}
			}
		}
	}
	for _, b := range bodies {
		newWalker(flow, b.p, b.of).walk(b.n)
	}
	flow.solve()
	for i, to := range flow.called {
		for f := range to {
			g.Funcs[i].Calls = append(g.Funcs[i].Calls, f)
		}
		slices.SortFunc(g.Funcs[i].Calls, func(a, b *Func) int { return cmp.Compare(a.Index, b.Index) })
	}
	return g
}

func (g *Graph) add(f *Func) *Func {
	f.Index = len(g.Funcs)
	if f.Writer == nil {
		f.Writer = f
	}
	g.Funcs = append(g.Funcs, f)
	return f
}

// Callers returns the functions that call each function, by Index.
func (g *Graph) Callers() [][]*Func {
	callers := make([][]*Func, len(g.Funcs))
	for _, f := range g.Funcs {
		for _, to := range f.Calls {
			callers[to.Index] = append(callers[to.Index], f)
		}
	}
	return callers
}

// Circles returns the greatest sets of two and more functions in which each
// calls each other, directly or through others of the set.
func (g *Graph) Circles() [][]*Func {
	var (
		index, low = make([]int, len(g.Funcs)), make([]int, len(g.Funcs))
		on         = make([]bool, len(g.Funcs))
		stack      []*Func
		next       = 1
		all        [][]*Func
		visit      func(*Func)
	)
	visit = func(f *Func) { // Tarjan, Depth-first search and linear graph algorithms, 1972
		index[f.Index], low[f.Index], on[f.Index] = next, next, true
		next++
		stack = append(stack, f)
		for _, to := range f.Calls {
			if index[to.Index] == 0 {
				visit(to)
				low[f.Index] = min(low[f.Index], low[to.Index])
			} else if on[to.Index] {
				low[f.Index] = min(low[f.Index], index[to.Index])
			}
		}
		if low[f.Index] != index[f.Index] {
			return
		}
		at := slices.Index(stack, f)
		if circle := slices.Clone(stack[at:]); len(circle) > 1 {
			all = append(all, circle)
		}
		for _, done := range stack[at:] {
			on[done.Index] = false
		}
		stack = stack[:at]
	}
	for _, f := range g.Funcs {
		if index[f.Index] == 0 {
			visit(f)
		}
	}
	return all
}
