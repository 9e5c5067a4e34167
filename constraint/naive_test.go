package constraint_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/resource"
)

// naive is the oracle: constraints as documents write them, evaluated from
// scratch for each node.
type naive struct {
	nodeSelector map[string]string
	required     []naiveTerm
	preferred    []naivePreference
	tolerations  []naiveToleration
}

type (
	naiveTerm       []naiveExpression
	naiveExpression struct {
		key, operator string
		values        []string
	}
	naivePreference struct {
		weight int32
		term   naiveTerm
	}
	naiveToleration struct{ key, operator, value, effect string }
	naiveTaint      struct{ key, value, effect string }
	naiveNode       struct {
		labels map[string]string
		taints []naiveTaint
	}
)

// refuses returns why the node is not allowed, or nil.
func (c *naive) refuses(n naiveNode) *resource.Reason {
	for _, t := range n.taints {
		if t.effect != "PreferNoSchedule" && !c.tolerates(t) {
			text := fmt.Sprintf("taint %s=%s:%s is not tolerated", t.key, t.value, t.effect)
			return &resource.Reason{Code: resource.ReasonTaint, Detail: strings.Replace(text, "=:", ":", 1)}
		}
	}
	keys := make([]string, 0, len(c.nodeSelector))
	for k := range c.nodeSelector {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if have, ok := n.labels[k]; !ok || have != c.nodeSelector[k] {
			quote := strings.NewReplacer("is !", "is not set", "is ,", `is "",`, "want .", `want "".`)
			text := fmt.Sprintf("label %s is %s, want %s.", k, have, c.nodeSelector[k])
			if !ok {
				text = fmt.Sprintf("label %s is !, want %s.", k, c.nodeSelector[k])
			}
			return &resource.Reason{Code: resource.ReasonNodeSelector, Detail: strings.TrimSuffix(quote.Replace(text), ".")}
		}
	}
	if len(c.required) > 0 && !slices.ContainsFunc(c.required, func(t naiveTerm) bool { return t.matches(n.labels) }) {
		return &resource.Reason{Code: resource.ReasonNodeAffinity} // TestRefusalsSayWhatIsWanted holds the words
	}
	return nil
}

// preference is the sum of the weights of preferred terms that match.
func (c *naive) preference(n naiveNode) int64 {
	var sum int64
	for _, p := range c.preferred {
		if p.term.matches(n.labels) {
			sum += int64(p.weight)
		}
	}
	return sum
}

func (c *naive) tolerates(t naiveTaint) bool {
	return slices.ContainsFunc(c.tolerations, func(o naiveToleration) bool {
		if o.effect != "" && o.effect != t.effect {
			return false
		}
		if o.operator == "Exists" {
			return o.key == "" || o.key == t.key
		}
		return o.key == t.key && o.value == t.value
	})
}

func (t naiveTerm) matches(labels map[string]string) bool {
	for _, e := range t {
		if !e.matches(labels) {
			return false
		}
	}
	return true
}

func (e naiveExpression) matches(labels map[string]string) bool {
	have, ok := labels[e.key]
	switch e.operator {
	case "In":
		return ok && slices.Contains(e.values, have)
	case "NotIn":
		return !ok || !slices.Contains(e.values, have)
	case "Exists":
		return ok
	case "DoesNotExist":
		return !ok
	}
	if !ok || len(e.values) != 1 {
		return false
	}
	a, errA := strconv.ParseInt(have, 10, 64)
	b, errB := strconv.ParseInt(e.values[0], 10, 64)
	if errA != nil || errB != nil {
		return false
	}
	switch e.operator {
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

// spec translates the constraints as the leader does with documents.
func (c *naive) spec() constraint.Spec {
	s := constraint.Spec{NodeSelector: c.nodeSelector}
	for _, t := range c.required {
		s.Required = append(s.Required, t.spec())
	}
	for _, p := range c.preferred {
		s.Preferred = append(s.Preferred, constraint.Preference{Weight: p.weight, Term: p.term.spec()})
	}
	for _, o := range c.tolerations {
		s.Tolerations = append(s.Tolerations, constraint.Toleration{
			Key: o.key, Value: o.value, AnyValue: o.operator == "Exists", Effect: constraint.Effect(o.effect),
		})
	}
	return s
}

func (t naiveTerm) spec() constraint.Term {
	var made constraint.Term
	for _, e := range t {
		made = append(made, constraint.Expression{Key: e.key, Operator: constraint.ParseOperator(e.operator), Values: e.values})
	}
	return made
}

// intern returns the node's labels and taints in the table.
func (n naiveNode) intern(t *constraint.Table) *constraint.Labels {
	var taints []constraint.Taint
	for _, taint := range n.taints {
		taints = append(taints, constraint.Taint{Key: taint.key, Value: taint.value, Effect: constraint.Effect(taint.effect)})
	}
	return t.Intern(n.labels, taints)
}
