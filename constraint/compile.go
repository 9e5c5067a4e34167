package constraint

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Compile makes the set of a spec, nil where the spec constrains nothing. The set
// is canonical: selectors, values, expressions, terms and tolerations are in
// order and without repetition, Gt and Lt are Gte and Lte of the next number,
// equal preferred terms are one, and what can change no verdict is left out. It
// keeps nothing of the spec.
func Compile(spec Spec) *Set {
	s := &Set{tolerations: compileTolerations(spec.Tolerations)}
	for _, k := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		s.selector = append(s.selector, selected{k, spec.NodeSelector[k]})
	}
	s.required, s.requires = compileRequired(spec.Required)
	s.preferred = compilePreferred(spec.Preferred)
	if len(s.selector) == 0 && !s.requires && len(s.preferred) == 0 && len(s.tolerations) == 0 {
		return nil
	}
	s.needs = s.collectNeeds()
	for _, p := range s.preferred {
		s.most += max(0, p.weight)
	}
	s.nodesKey = string(s.appendNodes(nil))
	s.key = strings.TrimSuffix(string(s.appendText(nil)), " ")
	return s
}

// collectNeeds are the labels of the selector and those that the only required
// term names with their only values.
func (s *Set) collectNeeds() []Label {
	var needs []Label
	for _, p := range s.selector {
		needs = append(needs, Label{p.key, p.value})
	}
	if len(s.required) != 1 {
		return needs
	}
	for _, r := range s.required[0] {
		if r.operator == In && len(r.values) == 1 {
			needs = append(needs, Label{r.key, r.values[0]})
		}
	}
	return needs
}

// compileTolerations drops all others beside a toleration of everything.
func compileTolerations(tolerations []Toleration) []Toleration {
	var made []Toleration
	for _, o := range tolerations {
		if o.AnyValue {
			o.Value = ""
		}
		if (o == Toleration{AnyValue: true}) {
			return []Toleration{o}
		}
		made = append(made, o)
	}
	slices.SortFunc(made, func(a, b Toleration) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value), strings.Compare(string(a.Effect), string(b.Effect)), compareBool(a.AnyValue, b.AnyValue))
	})
	return slices.Compact(made)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compileRequired leaves out terms that match no node; requires is false where
// every node is allowed.
func compileRequired(terms []Term) (made []term, requires bool) {
	for _, t := range terms {
		compiled, possible := compileTerm(t)
		switch {
		case possible && len(compiled) == 0:
			return nil, false
		case possible:
			made = append(made, compiled)
		}
	}
	slices.SortFunc(made, compareTerms)
	return slices.CompactFunc(made, func(a, b term) bool { return compareTerms(a, b) == 0 }), len(terms) > 0
}

// compilePreferred adds up the weights of equal terms.
func compilePreferred(preferences []Preference) []weighted {
	var made []weighted
	for _, p := range preferences {
		compiled, possible := compileTerm(p.Term)
		if !possible {
			continue
		}
		at, found := slices.BinarySearchFunc(made, compiled, func(w weighted, t term) int { return compareTerms(w.term, t) })
		if !found {
			made = slices.Insert(made, at, weighted{term: compiled})
		}
		made[at].weight += int64(p.Weight)
	}
	return slices.DeleteFunc(made, func(w weighted) bool { return w.weight == 0 })
}

// compileTerm compiles the expressions of a term; possible is false where one of
// them holds for no node.
func compileTerm(t Term) (made term, possible bool) {
	for _, e := range t {
		r, truth := compileExpression(e)
		switch truth {
		case never:
			return nil, false
		case depends:
			made = append(made, r)
		}
	}
	slices.SortFunc(made, compareRequirements)
	return slices.CompactFunc(made, func(a, b requirement) bool { return compareRequirements(a, b) == 0 }), true
}

// truth says for which nodes an expression holds.
type truth int

const (
	depends truth = iota // on the node
	always
	never
)

func compileExpression(e Expression) (requirement, truth) {
	r := requirement{key: e.Key, operator: e.Operator}
	switch e.Operator {
	case Exists, DoesNotExist:
		return r, depends
	case In, NotIn:
		r.values = slices.Compact(slices.Sorted(slices.Values(e.Values)))
		switch {
		case len(r.values) > 0:
			return r, depends
		case e.Operator == NotIn:
			return r, always
		}
		return r, never
	case Gt, Lt, Gte, Lte:
		return compileComparison(r, e.Values)
	}
	return r, never
}

// compileComparison replaces Gt by Gte of the next number, and Lt by Lte of the
// number before.
func compileComparison(r requirement, values []string) (requirement, truth) {
	if len(values) != 1 {
		return r, never
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	switch {
	case err != nil, r.operator == Gt && n == math.MaxInt64, r.operator == Lt && n == math.MinInt64:
		return r, never
	case r.operator == Gt:
		r.operator, n = Gte, n+1
	case r.operator == Lt:
		r.operator, n = Lte, n-1
	}
	r.number = n
	return r, depends
}

func compareTerms(a, b term) int { return slices.CompareFunc(a, b, compareRequirements) }

func compareRequirements(a, b requirement) int {
	return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.operator, b.operator), cmp.Compare(a.number, b.number), slices.Compare(a.values, b.values))
}

// appendText appends the set in a form that no other canonical set has: all names
// and values are quoted.
func (s *Set) appendText(b []byte) []byte {
	b = s.appendNodes(b)
	for _, p := range s.preferred {
		b = append(b, "prefer "...)
		b = append(strconv.AppendInt(b, p.weight, 10), ' ')
		b = p.term.appendText(b)
	}
	for _, o := range s.tolerations {
		b = append(b, "tolerate "...)
		b = strconv.AppendQuote(b, o.Key)
		if !o.AnyValue {
			b = append(b, '=')
			b = strconv.AppendQuote(b, o.Value)
		}
		b = append(b, ':')
		b = append(strconv.AppendQuote(b, string(o.Effect)), ' ')
	}
	return b
}

// appendNodes appends the rules about labels that a node has to meet.
func (s *Set) appendNodes(b []byte) []byte {
	for _, p := range s.selector {
		b = append(b, "select "...)
		b = append(strconv.AppendQuote(b, p.key), '=')
		b = append(strconv.AppendQuote(b, p.value), ' ')
	}
	if s.requires {
		b = append(b, "require "...)
		for _, t := range s.required {
			b = t.appendText(b)
		}
	}
	return b
}

// appendText appends e.g. `("zone" In "a" "b")`.
func (t term) appendText(b []byte) []byte {
	b = append(b, '(')
	for i, r := range t {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(strconv.AppendQuote(b, r.key), ' ')
		b = append(b, r.operator.String()...)
		for _, v := range r.values {
			b = strconv.AppendQuote(append(b, ' '), v)
		}
		if r.operator == Gte || r.operator == Lte {
			b = strconv.AppendInt(append(b, ' '), r.number, 10)
		}
	}
	return append(b, ") "...)
}
