package cluster

import (
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// Snapshot is the content of a State at one moment. It is immutable: any goroutine
// may read it and make forks of it, while the State goes on.
//
// The free amounts of the nodes are shared. A State that changes shared amounts
// copies those of the one node first, so a snapshot costs a copy of the nodes'
// facts at once, and of the amounts only of nodes that change afterwards.
type Snapshot struct {
	nodes     []Node // ascending by ID, each with shared amounts
	occupants []*Occupant
	evictable priorities
	related   map[string]bool
}

// Snapshot returns the content of the State, which has no open checkpoint.
func (s *State) Snapshot() *Snapshot {
	p := &Snapshot{nodes: make([]Node, len(s.nodes)), occupants: slices.Clone(s.occupants.list), evictable: slices.Clone(s.occupants.evictable), related: maps.Clone(s.relations.namespaces)}
	for i, n := range s.nodes {
		s.needsNoCheckpoint("take a snapshot of", n)
		n.shared = n.Free != nil
		p.nodes[i] = *n
	}
	return p
}

// Fork returns a State with the content of the snapshot, which its caller owns. A
// fork has no news: no node has grown and no occupant has changed.
func (p *Snapshot) Fork() *State {
	s := &State{nodes: make([]*Node, len(p.nodes))}
	nodes, kinds := slices.Clone(p.nodes), map[*Kind]*Kind{}
	for i := range nodes {
		n := &nodes[i]
		of := n.kind
		n.owner, n.grown, n.shrunk, n.indexed = s, false, false, indexed{}
		if of != nil {
			if kinds[of] == nil {
				kinds[of] = newKind(n.Host)
				s.index.kinds = append(s.index.kinds, kinds[of])
			}
			n.kind = kinds[of]
			n.kind.nodes++
		}
		n.Labels = s.labels.Adopt(n.Labels)
		s.nodes[i] = n
		s.index.enterLabels(n)
		s.markStale(n)
	}
	s.occupants = occupants{list: slices.Clone(p.occupants), evictable: slices.Clone(p.evictable), unnamed: true, ungrouped: true}
	s.relations.namespaces = maps.Clone(p.related)
	return s
}

// Len counts the nodes.
func (p *Snapshot) Len() int { return len(p.nodes) }

// Occupants are all occupants, in no order. The caller must not change the slice.
func (p *Snapshot) Occupants() []*Occupant { return p.occupants }

// unshare gives the node free amounts of its own, which nobody else reads. Even a
// search writes into them, and undoes that.
func (n *Node) unshare() {
	if n.shared {
		n.Free, n.shared = n.Free.Clone(), false
	}
}

// Assign chooses devices, CPUs and memory for a request on a node, as
// fit.Host.Assign does. The node has a host.
func (s *State) Assign(n *Node, r *resource.Request, a *resource.Assignment) bool {
	n.unshare()
	return n.Host.Assign(n.Free, *r, a)
}

// Explain returns why Assign says no, as fit.Host.Explain does. The node has a host.
func (s *State) Explain(n *Node, r *resource.Request) []resource.Reason {
	n.unshare()
	return n.Host.Explain(n.Free, *r)
}
