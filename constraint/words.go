package constraint

import (
	"fmt"
	"strings"
)

// This file words refusals for people.

// unmet says which requirement of the node affinity keeps the members away: by
// its expression where one term alone is required.
func (s *Set) unmet(l *Labels) string {
	switch len(s.required) {
	case 0:
		return "the node affinity matches no node"
	case 1:
		t := s.required[0]
		for i := range t {
			if r := &t[i]; !r.holds(l) {
				return fmt.Sprintf("%s, node affinity wants %s", l.describe(r.key), r)
			}
		}
	}
	return fmt.Sprintf("none of the %d terms of the node affinity matches", len(s.required))
}

// describe says which value a label has.
func (l *Labels) describe(key string) string {
	if have := l.find(key); have != nil {
		return fmt.Sprintf("label %s is %s", key, quoteEmpty(have.Value))
	}
	return fmt.Sprintf("label %s is not set", key)
}

// maxListed is the most values of an expression that a sentence lists.
const maxListed = 5

// String returns the expression, e.g. "zone In (a, b)" or "generation Gte 9".
func (r *requirement) String() string {
	switch r.operator {
	case In, NotIn:
		listed := r.values[:min(maxListed, len(r.values))]
		text := strings.Join(listed, ", ")
		if more := len(r.values) - len(listed); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return fmt.Sprintf("%s %s (%s)", r.key, r.operator, text)
	case Gte, Lte:
		return fmt.Sprintf("%s %s %d", r.key, r.operator, r.number)
	}
	return fmt.Sprintf("%s %s", r.key, r.operator)
}

// String returns the taint as Kubernetes writes taints: "key=value:Effect".
func (t Taint) String() string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

func quoteEmpty(value string) string {
	if value == "" {
		return `""`
	}
	return value
}
