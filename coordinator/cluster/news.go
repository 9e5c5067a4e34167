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
	grown := s.grown
	s.grown = nil
	for _, n := range grown {
		n.grown = false
	}
	slices.SortFunc(grown, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
	return grown
}

// markGrown notes that a node may take more than before. A node that was removed is
// of no interest.
func (s *State) markGrown(n *Node) {
	if !n.grown && n.owner == s {
		n.grown = true
		s.grown = append(s.grown, n)
	}
}
