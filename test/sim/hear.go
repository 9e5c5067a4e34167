package sim

import (
	"maps"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/events.go: what the leader makes of what agents say.

func (t *term) hear(st *stream, e event) {
	id := st.agent.h.node
	v := t.node(id)
	if v.stream != st {
		return
	}
	switch e := e.(type) {
	case connected:
		st.open, v.connected, v.registered = true, true, e.registered
		v.isolate(e.quarantined)
		t.returned(id)
		t.renumbered = t.renumbered || v.view.Host != nil && v.view.Host != e.host
		v.setHost(e.host)
		t.occupy(id, e.occupancy)
		if v.view.Unschedulable != e.occupancy.cordoned {
			t.tell(id, order{command: grant.Cordon{Cordoned: v.view.Unschedulable}})
		}
		t.reconnected(id)
	case disconnected:
		v.stream, v.connected = nil, false
		v.setReady()
		if t.leavesFrom(id) && t.sim.bug != CutOffUnnoticed {
			t.wake()
		}
	case enrolled:
		v.registered = e.revision
		v.isolate(false)
		t.returned(id)
		v.setReady()
		t.reconnected(id)
	case replied:
		t.replied(id, e.Reply)
	case occupied:
		t.occupy(id, e)
		t.wake()
	case health:
		v.unhealthy = e.unhealthy
		v.isolate(e.quarantined)
		v.rebuild()
		v.setReady()
		t.wake()
	}
}

// reconnected repeats what the node must know.
func (t *term) reconnected(id resource.NodeID) {
	for _, tx := range slices.Sorted(maps.Keys(t.attempts)) {
		if a := t.attempts[tx]; a != nil && slices.Contains(a.machine.Nodes(), id) {
			t.step(a, txn.Reconnected{Node: id})
		}
	}
	t.wake()
}

// occupy replaces what the view believes of a node by the agent's own word.
func (t *term) occupy(id resource.NodeID, o occupied) {
	v := t.node(id)
	v.unhealthy = o.unhealthy
	present := map[resource.TxID]bool{}
	for _, g := range o.grants {
		if g.State == grant.Tombstone {
			if !v.quarantined { // its record may be of before that
				t.tombstone(id, g.Tx)
			}
			continue
		}
		present[g.Tx] = true
		v.held[g.Tx] = &hold{members: membersOf(g.Members), confirmed: true, waiting: g.State == grant.Waiting}
		if !v.quarantined {
			t.promised(id, g)
		}
	}
	for tx, h := range v.held {
		if present[tx] {
			continue
		}
		a := t.attempts[tx]
		if a == nil {
			delete(v.held, tx)
			continue
		}
		h.confirmed, h.waiting = false, len(a.victims) > 0 && a.machine.Undecided()
	}
	t.hearsNothingOf(id, present)
	v.rebuild()
	v.setReady()
}

// tombstone handles a transaction that the agent has freed for good.
func (t *term) tombstone(id resource.NodeID, tx resource.TxID) {
	if a := t.attempts[tx]; a != nil {
		delete(a.presumed, id)
		t.step(a, txn.Freed{Node: id})
		return
	}
	t.heardOf(tx, id)
	t.tell(id, order{command: grant.Forget{Tx: tx}})
}

// isolate takes an agent's word on whether it is in quarantine: its registration
// is of revisions that are gone, then.
func (v *nodeView) isolate(quarantined bool) {
	if v.quarantined = quarantined; quarantined {
		v.registered = 0
	}
}

func membersOf(members []ledger.Holding) []grant.Member {
	list := make([]grant.Member, len(members))
	for i, m := range members {
		list[i] = grant.Member{Index: m.Index, Assignment: m.Assignment}
	}
	return list
}

// replied is an agent's answer on one transaction.
func (t *term) replied(id resource.NodeID, r ledger.Reply) {
	v := t.node(id)
	a := t.attempts[r.Tx]
	refused := r.Refused()
	if a != nil && !t.judge(id, a, r) {
		return
	}
	switch {
	case refused || r.State == grant.None:
		if v.held[r.Tx] != nil && (a == nil || a.machine.State() < txn.Committed && len(a.victims) == 0) {
			v.drop(r.Tx)
			t.wake()
		}
	case r.State == grant.Tombstone:
		if v.held[r.Tx] != nil {
			v.drop(r.Tx)
			t.wake()
		}
	default:
		if v.confirm(r.Tx, membersOf(r.Members), r.State == grant.Waiting) {
			t.wake()
		}
	}
	if !refused && r.State == grant.Tombstone && (a == nil || t.sim.bug == TombstoneForgottenEarly) {
		t.tell(id, order{command: grant.Forget{Tx: r.Tx}})
	}
	if a == nil {
		if !refused && r.State == grant.Tombstone {
			t.heardOf(r.Tx, id)
		}
		return
	}
	switch {
	case refused:
		t.tell(id, order{resync: true}) // its ledger is not what the view says
		t.step(a, txn.Refused{Node: id, Reasons: r.Reasons})
	case r.State == grant.Reserved:
		t.step(a, txn.Voted{Node: id, Vote: txn.Vote{Incarnation: r.Incarnation, Revision: r.Registered, Members: membersOf(r.Members)}})
	case r.State == grant.Waiting:
		vote := txn.Vote{Incarnation: r.Incarnation, Revision: r.Registered, Members: membersOf(r.Members)}
		t.step(a, txn.Waited{Node: id, Vote: vote})
		if t.sim.bug == EvictBeforeAllWait {
			for _, other := range a.machine.Nodes() {
				t.step(a, txn.Waited{Node: other, Vote: txn.Vote{Revision: t.nodes[other].registered}})
			}
		}
	case r.State == grant.Tombstone:
		delete(a.presumed, id)
		t.step(a, txn.Freed{Node: id})
		if t.sim.bug == ReleasedBeforeAllFreed {
			for _, other := range a.machine.Nodes() {
				t.step(a, txn.Freed{Node: other})
			}
		}
	}
}

// tell queues an order, if there is a stream to take it.
func (t *term) tell(id resource.NodeID, o order) {
	if st := t.nodes[id].stream; st != nil && st.open && !st.ended {
		st.down = append(st.down, o)
	}
}
