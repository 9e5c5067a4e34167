package decisions

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Class says what the units of one class ask for. It is logged before the first
// Offer that names it.
type Class struct {
	ID          int              `json:"id"` // 1 or more; of one class for a whole term
	Members     int              `json:"members"`
	Request     resource.Request `json:"request"` // of each member
	Constraints *Constraints     `json:"constraints,omitempty"`
	Namespace   string           `json:"namespace"`
	Queue       string           `json:"queue,omitempty"` // whose members that run are bounded
	Priority    int32            `json:"priority,omitempty"`
	Right       string           `json:"right"` // see rights
	// Subject has what rules about other units compare; nil where there are none.
	Subject *Subject `json:"subject,omitempty"`
	// Joins: rules about domains tie the class to the other members of the subject's group.
	Joins bool `json:"joins,omitempty"`
}

// rights are whom a class may have evicted, by sched.Right.
var rights = [...]string{sched.Nobody: "nobody", sched.OwnQuota: "own-quota", sched.Lower: "lower"}

// Constraints are those that decide on which nodes members may run.
type Constraints struct {
	Selector    map[string]string `json:"selector,omitempty"`
	Required    [][]Expression    `json:"required,omitempty"` // alternatives
	Tolerations []Toleration      `json:"tolerations,omitempty"`
}

// Expression is constraint.Expression.
type Expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Toleration is constraint.Toleration.
type Toleration struct {
	Key    string `json:"key,omitempty"`
	Value  string `json:"value,omitempty"`
	Any    bool   `json:"any,omitempty"` // value
	Effect string `json:"effect,omitempty"`
}

// Node is the labels of a node, and the taints that keep units away. It is logged
// before the first Event that needs them, and again when they have changed.
type Node struct {
	ID     resource.NodeID   `json:"id"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []Taint           `json:"taints,omitempty"`
}

// Taint is constraint.Taint.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

func classOf(id int, c *sched.Class) Class {
	d := c.Demand()
	return Class{
		ID: id, Members: d.Members, Request: d.Request, Constraints: constraintsOf(d.Constraints.Requirements()),
		Namespace: c.Namespace, Queue: c.Queue, Priority: c.Priority, Right: rights[c.Right],
		Subject: subjectOf(c), Joins: c.Relation != "" && d.Topology != nil,
	}
}

func constraintsOf(s constraint.Spec) *Constraints {
	if len(s.NodeSelector) == 0 && len(s.Required) == 0 && len(s.Tolerations) == 0 {
		return nil
	}
	c := &Constraints{Selector: s.NodeSelector}
	for _, t := range s.Required {
		list := make([]Expression, 0, len(t))
		for _, e := range t {
			list = append(list, Expression{e.Key, e.Operator.String(), e.Values})
		}
		c.Required = append(c.Required, list)
	}
	for _, o := range s.Tolerations {
		c.Tolerations = append(c.Tolerations, Toleration{o.Key, o.Value, o.AnyValue, string(o.Effect)})
	}
	return c
}

// compile returns the set; of nil that which constrains nothing.
func (c *Constraints) compile() *constraint.Set {
	if c == nil {
		return nil
	}
	s := constraint.Spec{NodeSelector: c.Selector}
	for _, list := range c.Required {
		t := make(constraint.Term, 0, len(list))
		for _, e := range list {
			t = append(t, constraint.Expression{Key: e.Key, Operator: constraint.ParseOperator(e.Operator), Values: e.Values})
		}
		s.Required = append(s.Required, t)
	}
	for _, o := range c.Tolerations {
		s.Tolerations = append(s.Tolerations, constraint.Toleration{Key: o.Key, Value: o.Value, AnyValue: o.Any, Effect: constraint.Effect(o.Effect)})
	}
	return constraint.Compile(s)
}

func nodeOf(n *cluster.Node) *Node {
	node := &Node{ID: n.ID, Labels: maps.Clone(n.Labels.Values())}
	for _, t := range n.Labels.Keepers() {
		node.Taints = append(node.Taints, Taint{t.Key, t.Value, string(t.Effect)})
	}
	return node
}

// intern returns the labels as constraints are asked about them.
func (n *Node) intern() *constraint.Labels {
	var alone constraint.Table
	taints := make([]constraint.Taint, 0, len(n.Taints))
	for _, t := range n.Taints {
		taints = append(taints, constraint.Taint{Key: t.Key, Value: t.Value, Effect: constraint.Effect(t.Effect)})
	}
	return alone.Intern(n.Labels, taints)
}

func (c *Class) check(version int) error {
	if version < 3 && c.Subject != nil {
		return fmt.Errorf("class.subject: not a field of format %d", version)
	}
	if version < 4 && c.Queue != "" {
		return fmt.Errorf("class.queue: not a field of format %d", version)
	}
	if c.Joins && (version < 5 || c.Subject == nil) {
		return fmt.Errorf("class.joins: set, with subject %v in format %d", c.Subject, version)
	}
	if c.ID < 1 || c.Members < 1 {
		return fmt.Errorf("class: id %d, members %d: want 1 or more", c.ID, c.Members)
	}
	if !slices.Contains(rights[:], c.Right) {
		return fmt.Errorf("class.right: %q: want one of %v", c.Right, rights)
	}
	return want("class.namespace", c.Namespace)
}

func (n *Node) check() error { return want("node.id", string(n.ID)) }
