package constraint

import "strconv"

// Requirements returns a spec that compiles to a set which allows the same nodes.
// The preferences are left out.
func (s *Set) Requirements() Spec {
	if s == nil {
		return Spec{}
	}
	spec := Spec{Tolerations: append([]Toleration(nil), s.tolerations...)}
	for _, p := range s.selector {
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[p.key] = p.value
	}
	for _, t := range s.required {
		spec.Required = append(spec.Required, t.expressions())
	}
	if s.requires && len(s.required) == 0 { // no term can match
		spec.Required = []Term{{{Operator: In}}}
	}
	return spec
}

// expressions returns a Term that compiles to this one.
func (t term) expressions() Term {
	list := make(Term, 0, len(t))
	for _, r := range t {
		e := Expression{Key: r.key, Operator: r.operator, Values: append([]string(nil), r.values...)}
		if r.operator == Gte || r.operator == Lte {
			e.Values = []string{strconv.FormatInt(r.number, 10)}
		}
		list = append(list, e)
	}
	return list
}
