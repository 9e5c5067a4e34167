package cluster

import (
	"cmp"
	"slices"
)

// TakeGrown returns the nodes that may take more than when TakeGrown was called
// last, each once, ascending by ID; nil for none. A node grows with each Give that
// no Rollback undoes, with a change of its host, labels or taints, and as it or
// its devices become ready, schedulable or healthy. The Take of the same amounts
// ends no growth.
func (s *State) TakeGrown() []*Node {
	return take(&s.grown, func(n *Node) { n.grown = false })
}

// take empties a list of nodes and returns them, ascending by ID; unmark takes the mark off
// each.
func take(list *[]*Node, unmark func(*Node)) []*Node {
	nodes := *list
	*list = nil
	for _, n := range nodes {
		unmark(n)
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
	return nodes
}

// HasGrown reports whether TakeGrown would return a node.
func (s *State) HasGrown() bool { return len(s.grown) > 0 }

// MarkGrown notes that a node may take more than before for a reason that the
// State does not see.
func (s *State) MarkGrown(n *Node) { s.markGrown(n) }

// HoldBack takes a node out of the grown ones, until it is marked again.
func (s *State) HoldBack(n *Node) {
	if n.grown {
		n.grown = false
		s.grown = slices.DeleteFunc(s.grown, func(g *Node) bool { return g == n })
	}
}

// Grown reports whether the node is among those that TakeGrown would return.
func (n *Node) Grown() bool { return n.grown }

// TakeShrunk returns the nodes that may take less than when TakeShrunk was called last,
// each once, ascending by ID; nil for none. A node shrinks with each Take that no Rollback
// undoes, with a change of its host, labels or taints, and as it or its devices stop being
// ready, schedulable or healthy. The Give of the same amounts ends no shrinking.
func (s *State) TakeShrunk() []*Node {
	return take(&s.shrunk, func(n *Node) { n.shrunk = false })
}

// ForgetShrunk drops what TakeShrunk would return.
func (s *State) ForgetShrunk() {
	for _, n := range s.shrunk {
		n.shrunk = false
	}
	s.shrunk = s.shrunk[:0]
}

// noteNews notes what a node may take now.
func (s *State) noteNews(n *Node, more, less bool) {
	if more {
		s.markGrown(n)
	}
	if less {
		s.markShrunk(n)
	}
}

// markShrunk notes that a node may take less than before.
func (s *State) markShrunk(n *Node) {
	if !n.shrunk && n.owner == s {
		n.shrunk = true
		s.shrunk = append(s.shrunk, n)
	}
}

// markGrown notes that a node may take more than before. A node that was removed is
// of no interest.
func (s *State) markGrown(n *Node) {
	if !n.grown && n.owner == s {
		n.grown = true
		s.grown = append(s.grown, n)
	}
}
