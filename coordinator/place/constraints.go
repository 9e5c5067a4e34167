package place

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// Constraints narrow the nodes a member may go to. The zero value allows every
// node without a NoSchedule taint. Immutable once built.
type Constraints struct {
	NodeSelector map[string]string
	Required     []api.NodeSelectorTerm // alternatives; empty = no requirement
	Preferred    []api.PreferredTerm
	Tolerations  []api.Toleration
}

// ConstraintsOf takes the constraints out of a submitted scheduling section.
func ConstraintsOf(s api.Scheduling) Constraints {
	c := Constraints{NodeSelector: s.NodeSelector, Tolerations: s.Tolerations}
	if s.Affinity != nil && s.Affinity.NodeAffinity != nil {
		na := s.Affinity.NodeAffinity
		if na.Required != nil {
			c.Required = na.Required.NodeSelectorTerms
		}
		c.Preferred = na.Preferred
	}
	return c
}

// IsZero reports whether every untainted node is allowed.
func (c *Constraints) IsZero() bool {
	return len(c.NodeSelector) == 0 && len(c.Required) == 0 && len(c.Preferred) == 0 && len(c.Tolerations) == 0
}

// Refuse reports whether labels or taints keep members off the node, whatever
// room it has.
func (c *Constraints) Refuse(n *cluster.Node) bool {
	return (len(n.Taints) > 0 || !c.IsZero()) && c.refuses(n) != nil
}

// refuses returns why the node is not allowed, or nil.
func (c *Constraints) refuses(n *cluster.Node) *resource.Reason {
	for _, t := range n.Taints {
		if t.Effect != "PreferNoSchedule" && !c.tolerates(t) {
			return &resource.Reason{Code: resource.ReasonTaint, Detail: fmt.Sprintf("taint %s=%s:%s is not tolerated", t.Key, t.Value, t.Effect)}
		}
	}
	if len(c.NodeSelector) > 0 {
		keys := make([]string, 0, len(c.NodeSelector))
		for k := range c.NodeSelector {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if have, ok := n.Labels[k]; !ok || have != c.NodeSelector[k] {
				return &resource.Reason{Code: resource.ReasonNodeSelector, Detail: fmt.Sprintf("label %s is %q, want %q", k, have, c.NodeSelector[k])}
			}
		}
	}
	if len(c.Required) > 0 && !slices.ContainsFunc(c.Required, func(t api.NodeSelectorTerm) bool { return matchesAll(t, n.Labels) }) {
		return &resource.Reason{Code: resource.ReasonNodeSelector, Detail: "no required node affinity term matches its labels"}
	}
	return nil
}

// preference is the sum of the weights of preferred terms that match.
func (c *Constraints) preference(n *cluster.Node) int64 {
	var sum int64
	for _, p := range c.Preferred {
		if matchesAll(p.Preference, n.Labels) {
			sum += int64(p.Weight)
		}
	}
	return sum
}

func (c *Constraints) tolerates(t api.Taint) bool {
	return slices.ContainsFunc(c.Tolerations, func(o api.Toleration) bool {
		if o.Effect != "" && o.Effect != t.Effect {
			return false
		}
		if o.Operator == "Exists" {
			return o.Key == "" || o.Key == t.Key
		}
		return o.Key == t.Key && o.Value == t.Value
	})
}

func matchesAll(term api.NodeSelectorTerm, labels map[string]string) bool {
	for _, e := range term.MatchExpressions {
		if !matches(e, labels) {
			return false
		}
	}
	return true
}

// matches evaluates one expression as Kubernetes does: NotIn and DoesNotExist
// hold for an absent label, comparisons do not.
func matches(e api.MatchExpression, labels map[string]string) bool {
	have, ok := labels[e.Key]
	switch e.Operator {
	case "In":
		return ok && slices.Contains(e.Values, have)
	case "NotIn":
		return !ok || !slices.Contains(e.Values, have)
	case "Exists":
		return ok
	case "DoesNotExist":
		return !ok
	}
	if !ok || len(e.Values) != 1 {
		return false
	}
	a, errA := strconv.ParseInt(have, 10, 64)
	b, errB := strconv.ParseInt(e.Values[0], 10, 64)
	if errA != nil || errB != nil {
		return false
	}
	switch e.Operator {
	case "Gt":
		return a > b
	case "Lt":
		return a < b
	case "Gte":
		return a >= b
	case "Lte":
		return a <= b
	}
	return false
}
