package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/node.go: the leader's view of a host.

// nodeView is the leader's view of one host.
type nodeView struct {
	view       place.Node
	stream     *stream
	dialing    bool
	connected  bool
	registered resource.Revision
	unhealthy  uint64
	// quarantined agents promise nothing until an operator has reconciled them.
	quarantined bool
	lied        bool   // and was caught: it gets no new work
	fence       *fence // nil: its incarnation may be counted on
	held        map[resource.TxID]*hold
}

// hold is what a transaction has on a node: planned, or confirmed by the agent.
type hold struct {
	members   []grant.Member
	confirmed bool
	waiting   bool // others have some of it still
}

func (t *term) node(id resource.NodeID) *nodeView {
	v := t.nodes[id]
	if v == nil {
		v = &nodeView{view: place.Node{ID: id}, held: map[resource.TxID]*hold{}}
		t.nodes[id] = v
		i, _ := slices.BinarySearchFunc(t.order, id, func(n *place.Node, id resource.NodeID) int { return cmp.Compare(n.ID, id) })
		t.order = slices.Insert(t.order, i, &v.view)
	}
	return v
}

// rebuild computes what is free on a node anew from the holds, confirmed ones
// first, then those that wait for them; a planned one that does not fit stays
// untaken.
func (v *nodeView) rebuild() {
	if v.view.Host == nil {
		return
	}
	v.view.Free = v.view.Host.NewFree()
	v.view.Free.Unhealthy = v.unhealthy
	for rank := range 3 {
		for _, tx := range slices.Sorted(maps.Keys(v.held)) {
			h := v.held[tx]
			if h.rank() != rank {
				continue
			}
			for i, m := range h.members {
				if err := v.view.Host.Take(v.view.Free, m.Assignment); err == nil {
					continue
				}
				if h.confirmed || h.waiting {
					v.takePresent(m.Assignment)
					continue
				}
				for _, n := range h.members[:i] {
					must(v.view.Host.Give(v.view.Free, n.Assignment))
				}
				break
			}
		}
	}
	v.view.Refresh()
}

// rank is the place in the order in which holds take what they have.
func (h *hold) rank() int {
	switch {
	case h.waiting:
		return 1
	case h.confirmed:
		return 0
	}
	return 2
}

// takePresent takes what the host still has of an assignment.
func (v *nodeView) takePresent(a resource.Assignment) {
	for i := range a.GPUs {
		_ = v.view.Host.Take(v.view.Free, resource.Assignment{GPUs: a.GPUs[i : i+1]}) // it may be gone
	}
	for i := range a.CPUs {
		_ = v.view.Host.Take(v.view.Free, resource.Assignment{CPUs: a.CPUs[i : i+1]}) // as above
	}
}

// confirm replaces what was planned for a transaction by what the agent says,
// and reports whether something may have become free by that.
func (v *nodeView) confirm(tx resource.TxID, members []grant.Member, waiting bool) bool {
	before, planned := v.view.Free, v.held[tx] != nil // rebuild makes another Free
	v.held[tx] = &hold{members: members, confirmed: true, waiting: waiting}
	v.rebuild()
	if planned && !before.Equal(v.view.Free) {
		return true
	}
	for i := range before.GPU {
		if v.view.Free.GPU[i] > before.GPU[i] {
			return true
		}
	}
	return false
}

func (v *nodeView) drop(tx resource.TxID) {
	if v.held[tx] != nil {
		delete(v.held, tx)
		v.rebuild()
	}
}

func (v *nodeView) setHost(h *fit.Host) { v.view.Host = h }

func (v *nodeView) setReady() {
	v.view.Ready = v.connected && v.trusted() && !v.quarantined && !v.lied && v.view.Host != nil
}
