package decisions

import (
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/sched"
)

// Subject is a unit as rules about other units see it, with those of its own rules
// that can keep units without a place.
type Subject struct {
	Group        string            `json:"group,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Affinity     []Near            `json:"affinity,omitempty"`
	AntiAffinity []Near            `json:"antiAffinity,omitempty"`
	Spread       []Near            `json:"spread,omitempty"`
}

// Near is constraint.Near.
type Near struct {
	Topology string       `json:"topology"`
	OwnGroup bool         `json:"ownGroup,omitempty"`
	Match    []Expression `json:"match,omitempty"`
}

// subjectOf is what rules compare of the units of a class.
func subjectOf(c *sched.Class) *Subject {
	if c.Relation == "" {
		return nil
	}
	return describe(c.Demand().Subject)
}

func describe(u *constraint.Subject) *Subject {
	s := &Subject{Group: u.Group, Labels: u.Labels.Values()}
	for _, n := range u.Relations.Affinity() {
		s.Affinity = append(s.Affinity, nearOf(&n))
	}
	for _, n := range u.Relations.AntiAffinity() {
		s.AntiAffinity = append(s.AntiAffinity, nearOf(&n))
	}
	for _, n := range u.Relations.Spread() {
		if n.Required {
			s.Spread = append(s.Spread, nearOf(&n.NearRule))
		}
	}
	return s
}

func nearOf(n *constraint.NearRule) Near {
	of := n.Selection.Selector()
	near := Near{Topology: n.TopologyKey, OwnGroup: of.OwnGroup}
	for _, e := range of.Match {
		near.Match = append(near.Match, Expression{e.Key, e.Operator.String(), e.Values})
	}
	return near
}

// compile returns the unit as constraints see it.
func (s *Subject) compile(namespace string) *constraint.Subject {
	var spec constraint.RelationSpec
	for _, n := range s.Affinity {
		spec.Affinity = append(spec.Affinity, n.near())
	}
	for _, n := range s.AntiAffinity {
		spec.AntiAffinity = append(spec.AntiAffinity, n.near())
	}
	for _, n := range s.Spread {
		spec.Spread = append(spec.Spread, constraint.Spread{MaxSkew: 1, TopologyKey: n.Topology, Selector: n.near().Selector, Required: true})
	}
	return &constraint.Subject{Namespace: namespace, Group: s.Group, Labels: constraint.LabelsOf(s.Labels), Relations: constraint.CompileRelations(spec)}
}

func (n *Near) near() constraint.Near {
	s := constraint.Selector{OwnGroup: n.OwnGroup}
	for _, e := range n.Match {
		s.Match = append(s.Match, constraint.Expression{Key: e.Key, Operator: constraint.ParseOperator(e.Operator), Values: e.Values})
	}
	return constraint.Near{TopologyKey: n.Topology, Selector: s}
}
