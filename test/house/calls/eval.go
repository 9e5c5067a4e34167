package calls

import (
	"go/ast"
	"go/types"
)

// isOutside reports whether a package is not of the module.
func (f *flow) isOutside(p *types.Package) bool { return p == nil || !f.own[p] }

// typeOf is the type of an expression, the invalid one for names of C.
func (w *walker) typeOf(e ast.Expr) types.Type {
	if t := w.info.TypeOf(e); t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}

// eval is the place of an expression's value, nil for an expression of a type
// without func values.
func (w *walker) eval(e ast.Expr) *place {
	if e == nil {
		return nil
	}
	if !mayHold(w.typeOf(e)) {
		return nil
	}
	return w.place(e)
}

// place is eval for expressions of any type. A value of outside code has a place
// too, for the func values in the value.
func (w *walker) place(e ast.Expr) *place {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return w.place(e.X)
	case *ast.StarExpr:
		return w.place(e.X)
	case *ast.UnaryExpr:
		return w.place(e.X)
	case *ast.SliceExpr:
		return w.place(e.X)
	case *ast.TypeAssertExpr:
		return w.place(e.X)
	case *ast.IndexExpr:
		return w.place(e.X)
	case *ast.IndexListExpr:
		return w.place(e.X)
	case *ast.Ident:
		return w.object(e)
	case *ast.SelectorExpr:
		return w.selected(e)
	case *ast.FuncLit:
		return w.only(w.flow.valueOf(e, w.closure(e), w.typeOf(e).(*types.Signature), false))
	case *ast.CompositeLit:
		return w.elements(e)
	case *ast.CallExpr:
		if results := w.call(e); len(results) == 1 {
			return results[0]
		}
	}
	return nil
}

func (w *walker) only(v *value) *place {
	p := &place{}
	w.flow.put(p, v)
	return p
}

func (w *walker) object(id *ast.Ident) *place {
	object := w.info.Uses[id]
	if object == nil {
		object = w.info.Defs[id]
	}
	switch object := object.(type) {
	case *types.Var:
		return w.flow.of(object)
	case *types.Func:
		return w.function(object, false)
	}
	return nil
}

// function is the place of a function as a value.
func (w *walker) function(object *types.Func, recvFirst bool) *place {
	f := w.flow.graph.Of(object)
	if f == nil {
		return nil
	}
	return w.only(w.flow.valueOf(f.Object, f, f.Object.Signature(), recvFirst))
}

func (w *walker) selected(e *ast.SelectorExpr) *place {
	selection := w.info.Selections[e]
	if selection == nil {
		return w.object(e.Sel)
	}
	if field, ok := selection.Obj().(*types.Var); ok {
		return w.flow.of(field)
	}
	method := selection.Obj().(*types.Func)
	recvFirst := selection.Kind() == types.MethodExpr
	of := interfaceOf(selection)
	if of == nil {
		if f := w.flow.graph.Of(method); f != nil && !recvFirst {
			w.receive(e.X, f.Object)
		}
		return w.function(method, recvFirst)
	}
	all := &place{}
	for _, m := range w.flow.impl.of(of, method.Name()) {
		w.flow.link(w.function(m, recvFirst), all)
	}
	return all
}

// receive makes a receiver flow to the method's.
func (w *walker) receive(x ast.Expr, method *types.Func) {
	if recv := method.Signature().Recv(); recv != nil && mayHold(recv.Type()) {
		w.flow.link(w.eval(x), w.flow.of(recv))
	}
}

// interfaceOf is the interface whose method a selection names, nil for a method
// of a type.
func interfaceOf(s *types.Selection) types.Type {
	if types.IsInterface(s.Recv()) {
		return s.Recv()
	}
	if recv := s.Obj().(*types.Func).Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
		return recv.Type()
	}
	return nil
}

// elements is the place of all elements of a literal of a slice, array or map.
func (w *walker) elements(n *ast.CompositeLit) *place {
	all := &place{}
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		w.flow.link(w.eval(e), all)
	}
	return all
}

// call adds a call once, and returns the places of its results.
func (w *walker) call(n *ast.CallExpr) []*place {
	if results, done := w.done[n]; done {
		return results
	}
	w.done[n] = nil // in a circle of expressions, which Go does not have
	results := w.resolve(n)
	w.done[n] = results
	return results
}

func (w *walker) resolve(n *ast.CallExpr) []*place {
	fun := ast.Unparen(n.Fun)
	is := w.info.Types[fun]
	switch {
	case is.IsType():
		return []*place{w.eval(n.Args[0])}
	case is.IsBuiltin():
		return w.builtin(fun, n.Args)
	case is.Type == nil:
		return nil // of C
	}
	signature, ok := is.Type.Underlying().(*types.Signature)
	if !ok {
		return nil // of a type parameter with a function as its type
	}
	args := w.args(n.Args)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	if s, ok := fun.(*ast.SelectorExpr); ok && w.info.Selections[s] != nil && w.info.Selections[s].Kind() == types.MethodVal {
		return w.method(s, signature, args)
	}
	var object types.Object
	switch x := fun.(type) {
	case *ast.Ident:
		object = w.info.Uses[x]
	case *ast.SelectorExpr:
		if w.info.Selections[x] == nil {
			object = w.info.Uses[x.Sel]
		}
	}
	if f, ok := object.(*types.Func); ok {
		if own := w.flow.graph.Of(f); own != nil {
			return w.static(own, args)
		}
		return w.outside(nil, signature, args)
	}
	results := fresh(signature)
	w.flow.addSite(w.place(n.Fun), &site{from: w.of, signature: signature, args: args, results: results})
	return results
}

// args are the places of arguments; those of f(g()) are the results of g.
func (w *walker) args(exprs []ast.Expr) []*place {
	if len(exprs) == 1 {
		if call, ok := ast.Unparen(exprs[0]).(*ast.CallExpr); ok {
			if _, tuple := w.typeOf(call).(*types.Tuple); tuple {
				return w.call(call)
			}
		}
	}
	args := make([]*place, len(exprs))
	for i, e := range exprs {
		args[i] = w.eval(e)
	}
	return args
}

// fresh returns places for the results of a call, nil for types without func values.
func fresh(signature *types.Signature) []*place {
	results := make([]*place, signature.Results().Len())
	for i := range results {
		if mayHold(signature.Results().At(i).Type()) {
			results[i] = &place{}
		}
	}
	return results
}

func (w *walker) static(f *Func, args []*place) []*place {
	w.flow.addCall(w.of, f)
	signature := f.Object.Signature()
	w.flow.bind(args, nil, signature)
	results := make([]*place, signature.Results().Len())
	for i := range results {
		if r := signature.Results().At(i); mayHold(r.Type()) {
			results[i] = w.flow.of(r)
		}
	}
	return results
}

func (w *walker) method(s *ast.SelectorExpr, signature *types.Signature, args []*place) []*place {
	selection := w.info.Selections[s]
	method := selection.Obj().(*types.Func)
	of := interfaceOf(selection)
	if of == nil {
		f := w.flow.graph.Of(method)
		if f == nil {
			return w.outside(s.X, signature, args)
		}
		w.receive(s.X, f.Object)
		return w.static(f, args)
	}
	results := fresh(signature)
	for _, m := range w.flow.impl.of(of, method.Name()) {
		f := w.flow.graph.Of(m)
		if f == nil { // promoted from outside
			continue
		}
		w.flow.addCall(w.of, f)
		w.receive(s.X, f.Object)
		w.flow.bind(args, results, f.Object.Signature())
	}
	return results
}

// outside is a call of code outside the module.
func (w *walker) outside(recv ast.Expr, signature *types.Signature, args []*place) []*place {
	var kept *place
	if recv != nil {
		kept = w.place(recv)
	}
	all := &place{}
	w.flow.link(kept, all)
	for _, a := range args {
		w.flow.addSite(a, &site{from: w.of, outside: true})
		w.flow.link(a, all)
		w.flow.link(a, kept)
	}
	results := fresh(signature)
	for i := range results {
		if results[i] != nil {
			results[i] = all
		}
	}
	return results
}

func (w *walker) builtin(fun ast.Expr, args []ast.Expr) []*place {
	id, ok := fun.(*ast.Ident)
	if !ok {
		return nil
	}
	switch id.Name {
	case "append":
		all := &place{}
		for _, a := range args {
			w.flow.link(w.eval(a), all)
		}
		return []*place{all}
	case "copy":
		w.flow.link(w.eval(args[1]), w.eval(args[0]))
	}
	return nil
}
