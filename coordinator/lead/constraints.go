package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/record"
)

// This file translates constraints from documents and records, which are
// validated.

// constraintsOf takes the constraints out of a submitted scheduling section.
func constraintsOf(s api.Scheduling) constraint.Spec {
	spec := constraint.Spec{NodeSelector: s.NodeSelector}
	for _, o := range s.Tolerations {
		spec.Tolerations = append(spec.Tolerations, constraint.Toleration{
			Key: o.Key, Value: o.Value, AnyValue: o.Operator == "Exists", Effect: constraint.Effect(o.Effect),
		})
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return spec
	}
	if required := s.Affinity.NodeAffinity.Required; required != nil {
		for _, t := range required.NodeSelectorTerms {
			spec.Required = append(spec.Required, termOf(t))
		}
	}
	for _, p := range s.Affinity.NodeAffinity.Preferred {
		spec.Preferred = append(spec.Preferred, constraint.Preference{Weight: p.Weight, Term: termOf(p.Preference)})
	}
	return spec
}

func termOf(t api.NodeSelectorTerm) constraint.Term {
	term := make(constraint.Term, len(t.MatchExpressions))
	for i, e := range t.MatchExpressions {
		term[i] = constraint.Expression{Key: e.Key, Operator: constraint.ParseOperator(e.Operator), Values: e.Values}
	}
	return term
}

// taintsOf takes the taints out of a node's specification.
func taintsOf(spec record.NodeSpec) []constraint.Taint {
	taints := make([]constraint.Taint, len(spec.Taints))
	for i, t := range spec.Taints {
		taints[i] = constraint.Taint{Key: t.Key, Value: t.Value, Effect: constraint.Effect(t.Effect)}
	}
	return taints
}
