package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/resource"
)

// State is the cluster as scheduling sees it. The zero State has no nodes.
//
// Invariant: nodes ascend by ID; grown has each node at most once, exactly the
// nodes whose grown is set; without an open checkpoint the journal is empty.
type State struct {
	nodes     []*Node
	grown     []*Node // in the order in which they grew
	shrunk    []*Node // in the order in which they shrank
	journal   journal
	occupants occupants
	labels    constraint.Table // those of the nodes
	index     index            // of all nodes
	offered   uint64           // see Offered
	relations relations
}

// NewState returns a State of these nodes, whose IDs differ.
func NewState(nodes ...*Node) *State {
	s := &State{}
	for _, n := range nodes {
		s.Insert(n)
	}
	return s
}

// Nodes are all nodes, ascending by ID. The caller must not change the slice.
func (s *State) Nodes() []*Node { return s.nodes }

// Offered grows with every change of the amounts, labels and taints that nodes would
// offer if they were empty: while it stays, the answer stays whether a request could
// ever fit.
func (s *State) Offered() uint64 { return s.offered }

// Node returns the node with an ID, nil where there is none.
func (s *State) Node(id resource.NodeID) *Node {
	if i, found := s.find(id); found {
		return s.nodes[i]
	}
	return nil
}

// Insert takes a node in, under its ID, which no other node may have. The State
// owns the node from then on.
func (s *State) Insert(n *Node) {
	s.needsNoCheckpoint("insert", n)
	i, found := s.find(n.ID)
	if found {
		panic(fmt.Sprintf("cluster: insert %s: a node has that ID", n.ID))
	}
	n.Refresh()
	n.owner, n.indexed = s, indexed{}
	s.nodes = slices.Insert(s.nodes, i, n)
	s.regroup()
	s.offered++
	s.index.enterLabels(n)
	s.index.joinKind(n)
	s.markStale(n)
	s.markGrown(n)
}

// Remove takes the node with an ID out, if there is one.
func (s *State) Remove(id resource.NodeID) {
	i, found := s.find(id)
	if !found {
		return
	}
	n := s.nodes[i]
	s.needsNoCheckpoint("remove", n)
	s.nodes = slices.Delete(s.nodes, i, i+1)
	s.regroup()
	s.offered++
	n.owner = nil
	s.index.remove(n)
	s.labels.Release(n.Labels)
	if n.grown {
		n.grown = false
		s.grown = slices.DeleteFunc(s.grown, func(g *Node) bool { return g == n })
	}
	if n.shrunk {
		n.shrunk = false
		s.shrunk = slices.DeleteFunc(s.shrunk, func(g *Node) bool { return g == n })
	}
}

func (s *State) find(id resource.NodeID) (int, bool) {
	return slices.BinarySearchFunc(s.nodes, id, func(n *Node, id resource.NodeID) int { return cmp.Compare(n.ID, id) })
}

// Take subtracts an assignment from the free amounts of a node: all of it or,
// where not all of it is free, nothing, with the error of fit.Host.Take. The node
// has a host. While a checkpoint is open nobody may change the assignment.
func (s *State) Take(n *Node, a resource.Assignment) error {
	n.unshare()
	if err := n.Host.Take(n.Free, a); err != nil {
		return err
	}
	if !s.journal.note(entry{node: n, assignment: a, before: n.Sums}) {
		s.markShrunk(n)
	}
	n.Refresh()
	s.markStale(n)
	return nil
}

// Give adds an assignment to the free amounts of a node: all of it or, where the
// node would have more than its host, nothing, with the error of fit.Host.Give. The
// node has a host. While a checkpoint is open nobody may change the assignment.
func (s *State) Give(n *Node, a resource.Assignment) error {
	n.unshare()
	if err := n.Host.Give(n.Free, a); err != nil {
		return err
	}
	if !s.journal.note(entry{node: n, assignment: a, given: true, before: n.Sums}) {
		s.markGrown(n)
	}
	n.Refresh()
	s.markStale(n)
	return nil
}

// LabelSets counts the different labels and taints that nodes have.
func (s *State) LabelSets() int { return s.labels.Len() }
