package calls

import (
	"go/types"

	"github.com/musterd/muster/test/source"
)

// implementers finds the methods behind a method of an interface.
type implementers struct {
	byName map[string][]candidate // by the method's name
	found  map[key][]*types.Func
}

type key struct {
	of     types.Type
	method string
}

// candidate is a type of the module with a method of the name.
type candidate struct {
	named  *types.Named
	method *types.Func
}

func newImplementers(checked []*source.Checked) *implementers {
	m := &implementers{byName: map[string][]candidate{}, found: map[key][]*types.Func{}}
	for _, p := range checked {
		// In the order of declarations, not of a map.
		for _, named := range namedTypes(p) {
			if types.IsInterface(named) {
				continue
			}
			set := types.NewMethodSet(types.NewPointer(named))
			for i := range set.Len() {
				method := set.At(i).Obj().(*types.Func).Origin()
				m.byName[method.Name()] = append(m.byName[method.Name()], candidate{named, method})
			}
		}
	}
	return m
}

// of returns the methods of the module's types behind a method of an interface.
func (m *implementers) of(t types.Type, method string) []*types.Func {
	k := key{types.Unalias(t), method}
	if methods, known := m.found[k]; known {
		return methods
	}
	var methods []*types.Func
	seen := map[*types.Func]bool{}
	for _, c := range m.byName[method] {
		if !seen[c.method] && c.implements(t) {
			seen[c.method] = true
			methods = append(methods, c.method)
		}
	}
	m.found[k] = methods
	return methods
}

func (c candidate) implements(t types.Type) bool {
	wanted := t.Underlying().(*types.Interface)
	if param, ok := t.(*types.TypeParam); ok {
		t = param.Constraint()
	}
	if c.named.TypeParams().Len() == 0 && !isGeneric(t, nil) {
		return types.Implements(types.NewPointer(c.named), wanted)
	}
	set := types.NewMethodSet(types.NewPointer(c.named))
	for i := range wanted.NumMethods() {
		if set.Lookup(wanted.Method(i).Pkg(), wanted.Method(i).Name()) == nil {
			return false
		}
	}
	return true
}

// namedTypes returns the types that a package declares, at any depth.
func namedTypes(p *source.Checked) []*types.Named {
	var all []*types.Named
	var visit func(s *types.Scope)
	visit = func(s *types.Scope) {
		for _, name := range s.Names() {
			if of, ok := s.Lookup(name).(*types.TypeName); ok && !of.IsAlias() {
				if named, ok := of.Type().(*types.Named); ok {
					all = append(all, named)
				}
			}
		}
		for i := range s.NumChildren() {
			visit(s.Child(i))
		}
	}
	visit(p.Types.Scope())
	return all
}
