package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// DefaultResources are counted by a tree that names none.
func DefaultResources() []resource.Name {
	return []resource.Name{resource.CPU, resource.Memory, resource.GPU}
}

// Unlimited is the quota of a node that caps nothing.
const Unlimited = resource.Unlimited

// TreeSpec describes a tree. Nodes that hang together wrongly are no error:
// what the root does not reach is left out and reported (Shape).
type TreeSpec struct {
	Name string
	// Resources are what the tree counts; other resources of quotas and
	// requests are ignored. Order and repetition do not matter. Empty means
	// cpu, memory and nvidia.com/gpu.
	Resources []resource.Name
	Nodes     map[string]NodeSpec
}

// NodeSpec describes a node. Amounts are in base units and not negative.
type NodeSpec struct {
	// Parent is empty for the root.
	Parent string
	// Hard nodes do not borrow. The root never does, hard or not.
	Hard bool
	// Quota is the most that consumers on the node and below may hold; a
	// resource that is not named has 0.
	Quota resource.Vector

	// The limits below restrict only the resources they name; nil is none.

	// Borrowing is the most that consumers of groups at or below the node may
	// hold on nodes above it.
	Borrowing resource.Vector
	// Lending is how much of the node's unused quota others may use; the rest
	// is kept free for it at its parent.
	Lending resource.Vector
	// Cap is the most that consumers of groups at or below the node may hold
	// altogether, borrowed amounts included. Nothing is evicted for it.
	Cap resource.Vector
	// PerOwner is the most that the consumers of one owner in groups at or
	// below the node may hold. Nothing is evicted for it.
	PerOwner resource.Vector
}

// ConsumerSpec describes a consumer: what it asks for on each tree.
type ConsumerSpec struct {
	ID string
	// Owner is whom NodeSpec.PerOwner counts the consumer to; empty is nobody,
	// whom no such limit holds.
	Owner   string
	Demands []Demand
}

// Demand is what a consumer asks of one tree.
type Demand struct {
	Tree  string
	Group string // a leaf of the tree
	// Request is in base units and not negative.
	Request resource.Vector
	// Priority: a bigger one wins.
	Priority int
	// Type: only consumers of the same type evict each other.
	Type int
	// Unpreemptable consumers are not evicted.
	Unpreemptable bool
}

// Clone returns an independent copy.
func (n NodeSpec) Clone() NodeSpec {
	n.Quota, n.Borrowing, n.Lending = n.Quota.Clone(), n.Borrowing.Clone(), n.Lending.Clone()
	n.Cap, n.PerOwner = n.Cap.Clone(), n.PerOwner.Clone()
	return n
}

// validate names the first field that is wrong, below path.
func (n NodeSpec) validate(path string) error {
	return cmp.Or(
		notNegative(path+".quota", n.Quota), notNegative(path+".borrowing", n.Borrowing),
		notNegative(path+".lending", n.Lending), notNegative(path+".cap", n.Cap), notNegative(path+".perOwner", n.PerOwner))
}

func (s TreeSpec) validate() error {
	if s.Name == "" {
		return fmt.Errorf("%w: name: a tree has one", ErrInvalid)
	}
	if slices.Contains(s.Resources, "") {
		return fmt.Errorf("%w: tree %s: resources: an empty name", ErrInvalid, s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
		if name == "" {
			return fmt.Errorf("%w: tree %s: nodes: an empty name", ErrInvalid, s.Name)
		}
		if err := s.Nodes[name].validate("nodes." + name); err != nil {
			return fmt.Errorf("tree %s: %w", s.Name, err)
		}
	}
	return nil
}

func (s ConsumerSpec) validate() error {
	if s.ID == "" {
		return fmt.Errorf("%w: id: a consumer has one", ErrInvalid)
	}
	for i, d := range s.Demands {
		path := fmt.Sprintf("demands[%d]", i)
		if d.Tree == "" {
			return fmt.Errorf("consumer %s: %w: %s.tree: empty", s.ID, ErrInvalid, path)
		}
		if slices.ContainsFunc(s.Demands[:i], func(e Demand) bool { return e.Tree == d.Tree }) {
			return fmt.Errorf("consumer %s: %w: %s.tree: %s is named twice", s.ID, ErrInvalid, path, d.Tree)
		}
		if err := notNegative(path+".request", d.Request); err != nil {
			return fmt.Errorf("consumer %s: %w", s.ID, err)
		}
	}
	return nil
}

func notNegative(path string, v resource.Vector) error {
	for name, amount := range v {
		if amount < 0 {
			return negative(path, v, name)
		}
	}
	return nil
}

// negative names the first negative amount in name order: v has one.
func negative(path string, v resource.Vector, found resource.Name) error {
	for name, amount := range v {
		if amount < 0 && name < found {
			found = name
		}
	}
	return fmt.Errorf("%w: %s.%s: %d is negative", ErrInvalid, path, found, v[found])
}

// sortedResources returns the resources a tree counts: ascending, each once.
func sortedResources(names []resource.Name) []resource.Name {
	if len(names) == 0 {
		names = DefaultResources()
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
