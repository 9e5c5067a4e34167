package sim

import (
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/adopt.go: preemptions that an earlier leader began.

// adoption is one whose victims are EVICTING and that has no record.
type adoption struct {
	tx      resource.TxID
	unit    *unit // nil: it does not wait any more
	victims []*attempt
	found   map[resource.NodeID][]grant.Member
	over    bool // it is being fenced
}

// adoptFrom finds the preemptions that earlier leaders began.
func (t *term) adoptFrom(live []recovered, decided map[resource.TxID]bool) {
	for i := range live {
		a := live[i].attempt
		by := a.machine.By()
		switch {
		case by == "" || t.sim.bug == AdoptionForgotten:
		case decided[by]:
			live[i].effects = append(live[i].effects, a.machine.Step(txn.PreemptorAborted{By: by})...)
		case t.adoptions[by] == nil:
			t.adoptions[by] = &adoption{tx: by, unit: t.waiterOf(by), found: map[resource.NodeID][]grant.Member{}}
			fallthrough
		default:
			t.adoptions[by].victims = append(t.adoptions[by].victims, a)
		}
	}
	for _, d := range t.adoptions {
		slices.SortFunc(d.victims, byTx)
		if d.unit != nil {
			d.unit.adopting = d
		}
	}
}

// waiterOf is the unit for which a transaction was begun, if it still waits.
func (t *term) waiterOf(tx resource.TxID) *unit {
	uid, _, _, err := tx.Attempt()
	must(err)
	for _, u := range t.units {
		if u.record.uid == uid && u.record.phase == pending && u.attempt == nil {
			return u
		}
	}
	return nil
}

// promised takes a promise that an agent has made to a transaction without a
// record. Where nobody is evicted agents resolve those by themselves.
func (t *term) promised(node resource.NodeID, g ledger.Grant) {
	if !t.sim.evictions || g.State != grant.Waiting && g.State != grant.Reserved || g.Epoch >= t.epoch || t.attempts[g.Tx] != nil {
		return
	}
	if d := t.adoptions[g.Tx]; d != nil {
		if !d.over && t.judgePromise(node, d, g) {
			d.found[node] = membersOf(g.Members)
			t.takeOver(d)
		}
		return
	}
	if t.sim.bug == AdoptionForgotten {
		return
	}
	d := &adoption{tx: g.Tx}
	t.adoptions[g.Tx] = d
	t.abandon(d)
}

// takeOver goes on with a preemption whose members are all found.
func (t *term) takeOver(d *adoption) {
	u := d.unit
	members := 0
	for _, m := range d.found {
		members += len(m)
	}
	if u == nil || members != u.client.demand.Members || u.ending != nil || u.writing {
		return
	}
	if !t.admit(u) {
		t.abandon(d)
		return
	}
	a := &attempt{unit: u, victims: d.victims, charges: u.charges(), requests: map[resource.NodeID][]grant.MemberRequest{}}
	var nodes []resource.NodeID
	for node, found := range d.found {
		nodes = append(nodes, node)
		for _, m := range found {
			a.requests[node] = append(a.requests[node], grant.MemberRequest{Index: m.Index, Request: u.client.demand.Request, PinnedGPUs: devicesOf(m.Assignment)})
		}
	}
	delete(t.adoptions, d.tx)
	u.adopting = nil
	t.accountFor(a, d.tx, nil, true)
	t.queue.Remove(u.key)
	var effects []txn.Effect
	a.machine, effects = txn.Adopt(d.tx, nodes, idsOf(a.victims)...)
	for _, v := range a.victims {
		v.prey = a
	}
	t.sim.stats["preemptions adopted"]++
	t.sim.logf("%s: goes on with %s as %s%s", t.name, u.client.name, short(d.tx), after(a.victims))
	t.drive(a, effects)
	for _, v := range a.victims {
		if v.machine.Freed() {
			t.step(a, txn.VictimFreed{Tx: v.machine.ID()})
		}
	}
}

// abandon fences a transaction that nobody drives; then its victims end for
// nobody.
func (t *term) abandon(d *adoption) {
	if d.over || t.adoptions[d.tx] != d {
		return
	}
	d.over = true
	uid, _, _, err := d.tx.Attempt()
	must(err)
	key := txKey(d.tx)
	t.settle(decision{
		what: "fence of " + short(d.tx) + ", which nobody drives", compares: []record.Compare{record.Absent(key)},
		ops:  []op{{key, record.Tx{State: grant.RecordAborted, Epoch: t.epoch, UnitUID: uid}}},
		done: func(o txn.Outcome, _ resource.Revision) { t.abandoned(d, o == txn.Landed) },
	}, key, func(e entry) bool { return e.value != nil })
}

func (t *term) abandoned(d *adoption, mine bool) {
	delete(t.adoptions, d.tx)
	if mine {
		t.terminal = append(t.terminal, d.tx)
	}
	for _, v := range t.order {
		if n := t.nodes[v.ID]; n.held[d.tx] != nil {
			t.tell(v.ID, order{command: grant.Abort{Tx: d.tx, Epoch: t.epoch}})
			n.drop(d.tx)
		}
	}
	for _, v := range d.victims {
		t.step(v, txn.PreemptorAborted{By: d.tx})
	}
	t.wake()
	if u := d.unit; u != nil {
		u.adopting = nil
		if u.ending != nil {
			t.endQueued(u)
			return
		}
		t.queue.Push(u.key)
	}
}
