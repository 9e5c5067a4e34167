package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is an operator after a restored backup: what `muster reconcile` has
// to do on the leader's side.

func (s *Sim) actOperator() bool {
	return s.withTerm(nil, func(t *term) { t.operate(pick(s, s.hosts)) })
}

// operate does the next thing that is to be done about one node. It reports
// false if there is none.
func (t *term) operate(h *host) bool {
	if t.ended || t.operating || t.sim.elected() != t.epoch {
		return false
	}
	if t.endWhatCameBack() {
		return true
	}
	a := h.agent
	if a == nil || !t.hears(h) || !a.l.Known() {
		return false
	}
	var lost []ledger.Grant
	for _, g := range a.l.Snapshot().Grants {
		r, _ := value[record.Tx](t.sim.store, txKey(g.Tx))
		if g.Origin == ledger.OriginTxn && (g.State == grant.Held || g.State == grant.Evicting) && !r.State.Charged() {
			lost = append(lost, g)
		}
	}
	for _, g := range lost {
		if t.adoptable(g) && t.adopt(g) {
			return true
		}
	}
	if len(lost) > 0 && t.disown(lost) {
		return true
	}
	if a.l.Quarantine().IsZero() {
		for _, g := range lost { // the store had grown beyond what the agent knew
			t.tell(h.node, order{command: grant.Release{Tx: g.Tx, Epoch: t.epoch, Grace: time.Second, Reason: "the store had lost its record"}})
		}
		return len(lost) > 0
	}
	t.reconcile(h, lost)
	return true
}

// hears reports whether the node's session is this term's.
func (t *term) hears(h *host) bool {
	st := t.nodes[h.node].stream
	return st != nil && st.open && !st.ended && h.agent != nil && h.agent.session == st
}

// endWhatCameBack releases a unit that an agent does not hold any more: it had
// ended after the backup was made.
func (t *term) endWhatCameBack() bool {
	for _, name := range slices.Sorted(maps.Keys(t.units)) {
		u := t.units[name]
		if u.attempt == nil || u.ending != nil || u.attempt.machine.State() != txn.Committed || u.record.phase != running {
			continue
		}
		for _, n := range u.attempt.machine.Nodes() {
			h := t.sim.host(n)
			if h.agent == nil || !h.agent.l.Known() || !t.hears(h) {
				continue
			}
			if g, _ := h.agent.l.Lookup(u.attempt.machine.ID()); !g.State.Holds() && t.sim.back[u.attempt.machine.ID()] {
				t.sim.logf("%s: an operator ends %s, which is not held on %s", t.name, name, n)
				u.client.ends = true
				t.finish(u, txn.ReleaseAsked{Reason: "its agents do not hold it"})
				t.schedule()
				return true
			}
		}
	}
	return false
}

// holders returns the nodes that hold members of a transaction, and these.
func (t *term) holders(tx resource.TxID) (votes map[resource.NodeID]txn.Vote, members int, all bool) {
	votes = map[resource.NodeID]txn.Vote{}
	for _, h := range t.sim.hosts {
		if !t.hears(h) {
			return nil, 0, false
		}
		g, _ := h.agent.l.Lookup(tx)
		if g.State != grant.Held && g.State != grant.Evicting {
			continue
		}
		votes[h.node] = txn.Vote{Incarnation: h.agent.incarnation, Members: membersOf(g.Members)}
		members += len(g.Members)
	}
	return votes, members, true
}

// adoptable reports whether a lost grant can have a record again: all members of
// its unit are held, and its name is free. An operator adopts most of these.
func (t *term) adoptable(g ledger.Grant) bool {
	c := t.clientNamed(g.Name)
	if c == nil || t.sim.rng.IntN(3) == 0 {
		return false
	}
	_, asked := t.requests[c.name]
	_, members, all := t.holders(g.Tx)
	return all && !asked && members == c.demand.Members
}

func (t *term) clientNamed(name string) *client {
	i := slices.IndexFunc(t.sim.clients, func(c *client) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return t.sim.clients[i]
}

// adopt makes a record for a lost grant, with its unit. First the members'
// registrations are read, then what they hold: a node that registers after that
// does not hold it for sure any more, and the Txn compares.
func (t *term) adopt(g ledger.Grant) bool {
	c := t.clientNamed(g.Name)
	t.counter++
	u := t.newUnit(c, unitRecord{uid: g.Unit, client: c.index, phase: running, tx: g.Tx, epoch: t.epoch, counter: t.counter})
	if !t.admit(u) {
		delete(t.requests, c.name)
		t.forget(u)
		return false
	}
	t.operating = true
	t.limits.Charge(g.Tx, u.charge)
	t.sim.begun[g.Tx] = admission{len(t.sim.begun), t.limitNow[c.namespace]}
	t.sim.logf("%s: an operator adopts %s of %s", t.name, short(g.Tx), c.name)
	t.sim.ask("registrations for the adoption of "+short(g.Tx), func() func() {
		specs := map[resource.NodeID]resource.Revision{}
		for _, h := range t.sim.hosts {
			specs[h.node] = t.sim.store.keys[specKey(h.node)].mod
		}
		return func() {
			if !t.ended {
				t.writeAdoption(u, g, specs)
			}
		}
	})
	return true
}

func (t *term) writeAdoption(u *unit, g ledger.Grant, specs map[resource.NodeID]resource.Revision) {
	c := u.client
	votes, members, all := t.holders(g.Tx)
	if !all || members != c.demand.Members {
		t.adopted(u, g.Tx, votes, txn.Conflict, 0)
		return
	}
	rec := record.Tx{
		State: grant.RecordCommitted, Epoch: g.Epoch, Unit: c.path(), UnitUID: g.Unit, Charges: u.charges(),
	}
	d := decision{
		what:     "adoption of " + short(g.Tx),
		compares: []record.Compare{record.Absent(txKey(g.Tx)), record.Absent(unitKey(c.name)), record.Absent(requestKey(c.name))},
		ops:      []op{{unitKey(c.name), u.record}, {requestKey(c.name), g.Unit}},
	}
	for _, h := range t.sim.hosts {
		v, holds := votes[h.node]
		if !holds {
			continue
		}
		for _, m := range v.Members {
			rec.Members = append(rec.Members, record.Placement{Member: m.Index, Node: h.node, Incarnation: v.Incarnation, Assignment: m.Assignment})
		}
		d.compares = append(d.compares, record.ModRevIs(specKey(h.node), specs[h.node]))
		d.ops = append(d.ops, op{indexKey(h.node, g.Tx), true})
	}
	d.ops = append(d.ops, op{txKey(g.Tx), rec})
	d.done = func(o txn.Outcome, rev resource.Revision) { t.adopted(u, g.Tx, votes, o, rev) }
	t.settle(d, txKey(g.Tx), func(e entry) bool {
		r, is := e.value.(record.Tx)
		return is && r.State == grant.RecordCommitted
	})
}

// adopted goes on with the record as if it had been found at the election.
func (t *term) adopted(u *unit, tx resource.TxID, votes map[resource.NodeID]txn.Vote, o txn.Outcome, rev resource.Revision) {
	t.operating = false
	if o != txn.Landed {
		t.limits.Discharge(tx)
		t.trees.Deallocate(treeName, u.client.name)
		delete(t.requests, u.client.name)
		t.forget(u)
		t.wake()
		return
	}
	t.sim.stats["adopted"]++
	u.stored = rev
	for n, v := range votes {
		t.node(n).held[tx] = &hold{members: v.Members, confirmed: true}
		t.node(n).rebuild()
	}
	a := &attempt{unit: u}
	var effects []txn.Effect
	a.machine, effects = txn.Recover(tx, txn.Found{State: grant.RecordCommitted, Revision: rev}, votes)
	u.attempt, t.attempts[tx] = a, a
	u.client.asked = t
	t.sim.told(u.client, u)
	t.perform(a, effects)
	t.wake() // others may have it evicted now
	t.schedule()
}

// disown decides of one of the grants that have no record that it never gets
// one, on no node. It reports false if all are decided.
func (t *term) disown(lost []ledger.Grant) bool {
	i := slices.IndexFunc(lost, func(g ledger.Grant) bool { return t.sim.store.keys[txKey(g.Tx)].value == nil })
	if i < 0 {
		return false
	}
	g, key := lost[i], txKey(lost[i].Tx)
	var unheard []resource.NodeID
	for _, other := range t.sim.hosts {
		if t.hears(other) {
			if held, _ := other.agent.l.Lookup(g.Tx); held.State.Holds() {
				unheard = append(unheard, other.node)
			}
		}
	}
	t.operating = true
	t.settle(decision{
		what: "end of the lost " + short(g.Tx), compares: []record.Compare{record.Absent(key)},
		ops: []op{{key, record.Tx{State: grant.RecordAborted, Epoch: g.Epoch, UnitUID: g.Unit, Reason: "lost", Unheard: unheard}}},
		done: func(o txn.Outcome, _ resource.Revision) {
			if t.operating = false; o == txn.Landed {
				t.bury(g.Tx, unheard)
			}
		},
	}, key, func(e entry) bool {
		r, is := e.value.(record.Tx)
		return is && r.Reason == "lost"
	})
	return true
}

// reconcile ends a quarantine: what has no record by now is released.
func (t *term) reconcile(h *host, lost []ledger.Grant) {
	t.operating = true
	t.sim.ask("the revision for the reconciliation of "+string(h.node), func() func() {
		rev := t.sim.store.rev
		return func() {
			t.operating = false
			if t.ended {
				return
			}
			c := grant.Reconcile{Epoch: t.epoch, Revision: rev, Grace: time.Duration(t.sim.rng.IntN(5)) * time.Second}
			for _, g := range lost {
				if r, _ := value[record.Tx](t.sim.store, txKey(g.Tx)); r.State.Charged() {
					c.Adopted = append(c.Adopted, g.Tx)
				} else {
					c.Released = append(c.Released, g.Tx)
				}
			}
			t.sim.logf("%s: an operator reconciles %s", t.name, h.node)
			t.sim.stats["reconciled"]++
			t.tell(h.node, order{command: c})
		}
	})
}
