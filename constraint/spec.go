// Package constraint says on which nodes a unit's members may run, and which of
// these nodes they prefer: node selectors, node affinity, and tolerations of
// taints, with the meaning that Kubernetes gives them. A unit's constraints are
// compiled once into a Set, a node's labels and taints are interned as Labels,
// and a Set is evaluated against Labels without allocation.
//
// The package knows no documents, no resources of nodes and no other units.
package constraint

// Spec is one unit's constraints as its client states them. The zero value
// allows every node without a taint that keeps units away.
type Spec struct {
	NodeSelector map[string]string
	Required     []Term // alternatives; empty = no requirement
	Preferred    []Preference
	Tolerations  []Toleration
}

// Term matches a node that all its expressions hold for.
type Term []Expression

// Preference adds Weight to the preference for nodes that Term matches.
type Preference struct {
	Weight int32
	Term   Term
}

// Expression compares the value of one label with Values.
type Expression struct {
	Key      string
	Operator Operator
	Values   []string
}

// Operator compares a label with values.
type Operator uint8

// The operators. NotIn and DoesNotExist hold for a node without the label, the
// other operators do not. Gt, Lt, Gte and Lte take one value, and compare 64-bit
// decimal integers; they hold for no label that is anything else.
const (
	Unknown Operator = iota // holds for no node
	In
	NotIn
	Exists
	DoesNotExist
	Gt
	Lt
	Gte
	Lte
)

var operators = [...]string{"Unknown", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}

// ParseOperator returns the operator that documents name so, Unknown for any
// other name.
func ParseOperator(name string) Operator {
	for o := In; o <= Lte; o++ {
		if operators[o] == name {
			return o
		}
	}
	return Unknown
}

// String returns the name in documents.
func (o Operator) String() string {
	if o > Lte {
		o = Unknown
	}
	return operators[o]
}

// Effect is the consequence of a taint.
type Effect string

// The effects. Every effect but PreferNoSchedule keeps units away that do not
// tolerate the taint.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Taint keeps units without a matching toleration off a node, or has them prefer others.
type Taint struct {
	Key, Value string
	Effect     Effect
}

// keepsAway reports whether units need a toleration.
func (t Taint) keepsAway() bool { return t.Effect != PreferNoSchedule }

// Toleration lets a unit onto nodes with a matching taint. An empty Effect
// matches every effect. With AnyValue (Exists in documents) the taint's value does
// not matter, and an empty Key matches every key.
type Toleration struct {
	Key, Value string
	AnyValue   bool
	Effect     Effect
}

// Covers reports whether the toleration matches the taint.
func (o Toleration) Covers(t Taint) bool { return o.covers(t) }

func (o Toleration) covers(t Taint) bool {
	switch {
	case o.Effect != "" && o.Effect != t.Effect:
		return false
	case o.AnyValue:
		return o.Key == "" || o.Key == t.Key
	}
	return o.Key == t.Key && o.Value == t.Value
}
