package calls

import (
	"go/types"

	"github.com/musterd/muster/test/source"
)

// value is a func value: a function, a method, a method expression or a closure.
type value struct {
	of        *Func
	signature *types.Signature // of the declaration or literal
	recvFirst bool             // a method expression: the receiver is the first argument
}

// place is where func values can be: a variable, a field, a parameter, a result,
// or the result of an expression.
type place struct {
	values map[*value]bool
	to     []*place
	calls  []*site // calls of the values here
}

// site is a call of a func value.
type site struct {
	from      *Func
	signature *types.Signature // as called
	args      []*place         // nil for types without func values
	results   []*place
	outside   bool // a call in code outside the module, with unknown arguments
}

// event is the arrival of a value at a place.
type event struct {
	at *place
	v  *value
}

// flow resolves calls of func values, by the inclusion of places in one another
// (Andersen, Program Analysis and Specialization for the C Programming Language,
// 1994).
type flow struct {
	graph  *Graph
	vars   map[*types.Var]*place
	values map[any]*value // by *types.Func or *ast.FuncLit
	called []map[*Func]bool
	todo   []event
	impl   *implementers
	own    map[*types.Package]bool // of the module
}

func newFlow(g *Graph, checked []*source.Checked) *flow {
	f := &flow{graph: g, vars: map[*types.Var]*place{}, values: map[any]*value{}, impl: newImplementers(checked), own: map[*types.Package]bool{}}
	for _, p := range checked {
		f.own[p.Types] = true
	}
	return f
}

// of is the place of a variable.
func (f *flow) of(v *types.Var) *place {
	v = v.Origin()
	p := f.vars[v]
	if p == nil {
		p = &place{}
		f.vars[v] = p
	}
	return p
}

// link makes the values of a place flow to another place.
func (f *flow) link(from, to *place) {
	if from == nil || to == nil || from == to {
		return
	}
	from.to = append(from.to, to)
	for v := range from.values {
		f.put(to, v)
	}
}

func (f *flow) put(at *place, v *value) {
	if at.values[v] {
		return
	}
	if at.values == nil {
		at.values = map[*value]bool{}
	}
	at.values[v] = true
	f.todo = append(f.todo, event{at, v})
}

// addSite resolves a call of all present and later values of a place.
func (f *flow) addSite(at *place, s *site) {
	if at == nil {
		return
	}
	at.calls = append(at.calls, s)
	for v := range at.values {
		f.call(s, v)
	}
}

func (f *flow) solve() {
	for len(f.todo) > 0 {
		e := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		for _, to := range e.at.to {
			f.put(to, e.v)
		}
		for _, s := range e.at.calls {
			f.call(s, e.v)
		}
	}
}

// addCall notes an edge.
func (f *flow) addCall(from, to *Func) {
	for len(f.called) < len(f.graph.Funcs) {
		f.called = append(f.called, nil)
	}
	if f.called[from.Index] == nil {
		f.called[from.Index] = map[*Func]bool{}
	}
	f.called[from.Index][to] = true
}

// call binds a site to a value.
func (f *flow) call(s *site, v *value) {
	if s.outside {
		f.addCall(s.from, v.of)
		return
	}
	if !mayBe(s.signature, v) {
		return
	}
	f.addCall(s.from, v.of)
	args := s.args
	if v.recvFirst && len(args) > 0 {
		f.link(args[0], f.of(v.signature.Recv()))
		args = args[1:]
	}
	f.bind(args, s.results, v.signature)
}

// bind makes arguments flow to parameters and results back.
func (f *flow) bind(args, results []*place, signature *types.Signature) {
	params := signature.Params()
	for i, a := range args {
		if a == nil || params.Len() == 0 {
			continue
		}
		if p := params.At(min(i, params.Len()-1)); mayHold(p.Type()) {
			f.link(a, f.of(p))
		}
	}
	for i, r := range results {
		if r != nil && i < signature.Results().Len() && mayHold(signature.Results().At(i).Type()) {
			f.link(f.of(signature.Results().At(i)), r)
		}
	}
}

// mayBe reports whether a value fits a call of this signature.
func mayBe(called *types.Signature, v *value) bool {
	params := v.signature.Params().Len()
	if v.recvFirst {
		params++
	}
	if called.Params().Len() != params || called.Results().Len() != v.signature.Results().Len() || called.Variadic() != v.signature.Variadic() {
		return false
	}
	if v.recvFirst {
		return true
	}
	for i := range params {
		if !alike(called.Params().At(i).Type(), v.signature.Params().At(i).Type()) {
			return false
		}
	}
	for i := range called.Results().Len() {
		if !alike(called.Results().At(i).Type(), v.signature.Results().At(i).Type()) {
			return false
		}
	}
	return true
}

// alike reports whether two types are identical, or can be by their type
// arguments.
func alike(a, b types.Type) bool {
	return types.Identical(a, b) || isGeneric(a, nil) || isGeneric(b, nil)
}

// isGeneric reports whether a type names a type parameter.
func isGeneric(t types.Type, seen []types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return true
	case *types.Named:
		for i := range t.TypeArgs().Len() {
			if isGeneric(t.TypeArgs().At(i), seen) {
				return true
			}
		}
		return t.TypeArgs().Len() == 0 && t.TypeParams().Len() > 0
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels, maps
		m, isMap := t.(*types.Map)
		return isGeneric(t.Elem(), seen) || isMap && isGeneric(m.Key(), seen)
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for i := range tuple.Len() {
				if isGeneric(tuple.At(i).Type(), seen) {
					return true
				}
			}
		}
	}
	return false
}

// mayHold reports whether a value of the type can be a func value, or a container
// of func values. The fields of a struct are places of their own.
func mayHold(t types.Type) bool {
	for range 8 { // deeper containers count as empty
		switch u := t.Underlying().(type) {
		case *types.Signature, *types.Interface:
			return true
		case interface{ Elem() types.Type }:
			t = u.Elem()
		default:
			_, param := types.Unalias(t).(*types.TypeParam)
			return param
		}
	}
	return false
}

// valueOf is the func value of a function or of a closure, the same each time.
func (f *flow) valueOf(key any, of *Func, signature *types.Signature, recvFirst bool) *value {
	type expression struct{ key any }
	if recvFirst {
		key = expression{key}
	}
	v := f.values[key]
	if v == nil {
		v = &value{of: of, signature: signature, recvFirst: recvFirst}
		f.values[key] = v
	}
	return v
}
