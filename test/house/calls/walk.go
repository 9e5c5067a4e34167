package calls

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/musterd/muster/test/source"
)

// walker adds the calls and flows of one function's body, its closures among them.
type walker struct {
	flow     *flow
	info     *types.Info
	of       *Func
	results  *types.Tuple // of the function or closure whose statements are walked
	done     map[*ast.CallExpr][]*place
	closures map[ast.Node]*Func
}

func newWalker(f *flow, p *source.Checked, of *Func) *walker {
	return &walker{flow: f, info: p.Info, of: of, done: map[*ast.CallExpr][]*place{}, closures: map[ast.Node]*Func{}}
}

// walk adds the calls in a node.
func (w *walker) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			w.within(w.of, w.of.Object.Signature().Results(), n.Body)
			return false
		case *ast.FuncLit:
			w.within(w.closure(n), w.typeOf(n).(*types.Signature).Results(), n.Body)
			return false
		case *ast.CallExpr:
			w.call(n)
		case *ast.AssignStmt:
			w.assign(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			var names []ast.Expr
			for _, name := range n.Names {
				names = append(names, name)
			}
			w.assign(names, n.Values)
		case *ast.ReturnStmt:
			w.giveBack(n.Results)
		case *ast.RangeStmt:
			return !w.overRange(n)
		case *ast.SendStmt:
			w.flow.link(w.eval(n.Value), w.eval(n.Chan))
		case *ast.CompositeLit:
			w.fields(n)
		case *ast.TypeSwitchStmt:
			w.overTypes(n)
		}
		return true
	})
}

// within walks the body of a function or closure.
func (w *walker) within(of *Func, results *types.Tuple, body *ast.BlockStmt) {
	outerOf, outer := w.of, w.results
	w.of, w.results = of, results
	w.walk(body)
	w.of, w.results = outerOf, outer
}

// closure is the node of a literal or of a loop's body, the same each time.
func (w *walker) closure(n ast.Node) *Func {
	c := w.closures[n]
	if c == nil {
		c = w.flow.graph.add(&Func{Folder: w.of.Folder, Writer: w.of.Writer})
		w.closures[n] = c
		w.flow.addCall(w.of, c)
	}
	return c
}

// store makes the values of a place flow to a variable, field or element.
func (w *walker) store(from *place, to ast.Expr) {
	if from == nil {
		return
	}
	if field := w.fieldOf(to); field != nil {
		w.storeField(from, field)
		return
	}
	w.flow.link(from, w.eval(to))
}

// storeField stores in a field. Code outside the module calls the values in fields
// of its own structs.
func (w *walker) storeField(from *place, field *types.Var) {
	if from == nil {
		return
	}
	if w.flow.isOutside(field.Pkg()) {
		w.flow.addSite(from, &site{from: w.of, outside: true})
	}
	w.flow.link(from, w.flow.of(field))
}

func (w *walker) fieldOf(e ast.Expr) *types.Var {
	if s, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
		if selection := w.info.Selections[s]; selection != nil && selection.Kind() == types.FieldVal {
			return selection.Obj().(*types.Var)
		}
	}
	return nil
}

func (w *walker) assign(to, from []ast.Expr) {
	if len(from) == len(to) {
		for i := range to {
			w.store(w.eval(from[i]), to[i])
		}
		return
	}
	if len(from) != 1 {
		return
	}
	if call, ok := ast.Unparen(from[0]).(*ast.CallExpr); ok {
		for i, r := range w.call(call) {
			if i < len(to) {
				w.store(r, to[i])
			}
		}
		return
	}
	w.store(w.eval(from[0]), to[0]) // v, ok := of an assertion, a map or a channel
}

func (w *walker) giveBack(from []ast.Expr) {
	if len(from) == 1 && w.results.Len() > 1 {
		if call, ok := ast.Unparen(from[0]).(*ast.CallExpr); ok {
			for i, r := range w.call(call) {
				w.flow.link(r, w.flow.of(w.results.At(i)))
			}
		}
		return
	}
	for i, e := range from {
		w.flow.link(w.eval(e), w.flow.of(w.results.At(i)))
	}
}

// overRange makes elements flow to the loop's variables. For a loop over a function
// overRange walks the body and returns true.
func (w *walker) overRange(n *ast.RangeStmt) bool {
	var to []ast.Expr
	for _, e := range []ast.Expr{n.Key, n.Value} {
		if e != nil {
			to = append(to, e)
		}
	}
	signature, ok := w.typeOf(n.X).Underlying().(*types.Signature)
	if !ok {
		for _, e := range to {
			w.store(w.eval(n.X), e)
		}
		return false
	}
	yield, ok := signature.Params().At(0).Type().Underlying().(*types.Signature)
	if !ok {
		return false
	}
	var params []*types.Var
	for i := range yield.Params().Len() {
		p := types.NewVar(token.NoPos, nil, "", yield.Params().At(i).Type())
		params = append(params, p)
		if i < len(to) && mayHold(p.Type()) {
			w.store(w.flow.of(p), to[i])
		}
	}
	loop := &place{}
	body := types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), yield.Results(), false)
	w.flow.put(loop, w.flow.valueOf(n, w.closure(n), body, false))
	w.flow.addSite(w.eval(n.X), &site{from: w.of, signature: signature, args: []*place{loop}})
	w.walk(n.X)
	w.within(w.closure(n), w.results, n.Body)
	return true
}

// fields makes the values of a struct's literal flow to its fields.
func (w *walker) fields(n *ast.CompositeLit) {
	t := types.Unalias(w.typeOf(n))
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	fields, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if field, ok := w.info.Uses[kv.Key.(*ast.Ident)].(*types.Var); ok {
				w.storeField(w.eval(kv.Value), field)
			}
		} else {
			w.storeField(w.eval(e), fields.Field(i))
		}
	}
}

func (w *walker) overTypes(n *ast.TypeSwitchStmt) {
	assign, ok := n.Assign.(*ast.AssignStmt)
	if !ok {
		return
	}
	asserted, ok := ast.Unparen(assign.Rhs[0]).(*ast.TypeAssertExpr)
	if !ok {
		return
	}
	from := w.eval(asserted.X)
	for _, clause := range n.Body.List {
		if v, ok := w.info.Implicits[clause].(*types.Var); ok {
			w.flow.link(from, w.flow.of(v))
		}
	}
}
