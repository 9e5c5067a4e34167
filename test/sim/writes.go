package sim

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/writes.go: the Txns of a transaction.

// writeCommit asks for the commit point.
func (t *term) writeCommit(a *attempt) {
	u, tx := a.unit, a.machine.ID()
	if !t.mayDisplace(a) {
		t.step(a, txn.CommitAnswered{Outcome: txn.Conflict}) // nothing was sent
		return
	}
	rec := record.Tx{State: grant.RecordCommitted, Epoch: t.epoch, Unit: u.client.path(), UnitUID: u.record.uid, Charges: a.charges}
	d := decision{what: "commit of " + short(tx), compares: []record.Compare{record.ModRevIs(unitKey(u.client.name), u.stored)}}
	if t.sim.bug != CommitOverRecord {
		d.compares = append(d.compares, record.Absent(txKey(tx)))
	}
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		switch t.sim.bug {
		case CommitWithoutIncarnation:
		case CompareIdentityReadAnew:
			d.compares = append(d.compares, record.ModRevIs(identityKey(node), t.sim.store.keys[identityKey(node)].mod))
		default:
			d.compares = append(d.compares, record.ModRevIs(identityKey(node), v.Revision))
		}
		for _, m := range v.Members {
			rec.Members = append(rec.Members, record.Placement{Member: m.Index, Node: node, Incarnation: v.Incarnation, Assignment: m.Assignment})
		}
		d.ops = append(d.ops, op{indexKey(node, tx), true})
	}
	r := u.record
	r.phase, r.tx = running, tx
	d.ops = append(d.ops, op{txKey(tx), rec}, op{unitKey(u.client.name), r})
	if u.queued {
		d.ops = append(d.ops, op{orderKey(u.client.name), nil})
	}
	if u.create {
		d.compares = append(d.compares, record.Absent(requestKey(u.client.name)))
		d.ops = append(d.ops, op{requestKey(u.client.name), r.uid})
	}
	for _, v := range a.victims {
		d.compares = append(append(d.compares, t.stillDead(v)...), record.ModRevIs(txKey(v.machine.ID()), v.machine.Revision()))
		if ops := t.releasedOps(v); t.sim.bug != SwapKeepsVictims {
			d.ops = append(d.ops, ops...)
		}
	}
	d.done = func(o txn.Outcome, rev resource.Revision) { t.commitAnswered(a, o, rev) }
	t.submit(d)
	if t.sim.bug == AckBeforeCommit {
		t.sim.checkAcknowledged(tx)
	}
}

func (t *term) commitAnswered(a *attempt, o txn.Outcome, rev resource.Revision) {
	if o == txn.Unknown {
		switch t.sim.bug {
		case UnknownIsAborted:
			for _, n := range a.machine.Nodes() {
				t.tell(n, order{command: grant.Abort{Tx: a.machine.ID(), Epoch: t.epoch}})
			}
		case ChargeDroppedOnUnknown:
			t.discharge(a)
		}
	}
	t.step(a, txn.CommitAnswered{Outcome: o, Revision: rev})
}

// writeAborted fences: whichever Txn creates the record first decides.
func (t *term) writeAborted(a *attempt) {
	tx := a.machine.ID()
	t.submit(decision{
		what: "fence of " + short(tx), anyEpoch: true, compares: []record.Compare{record.Absent(txKey(tx))},
		ops:  []op{{txKey(tx), record.Tx{State: grant.RecordAborted, Epoch: t.epoch, UnitUID: a.unit.record.uid}}},
		done: func(o txn.Outcome, _ resource.Revision) { t.step(a, txn.FenceAnswered{Outcome: o}) },
	})
}

// recordOf rebuilds the record of a committed transaction from its votes.
func (t *term) recordOf(a *attempt, state grant.RecordState) record.Tx {
	u := a.unit
	_, epoch, _, err := a.machine.ID().Attempt()
	must(err)
	rec := record.Tx{State: state, Epoch: epoch, Unit: u.client.path(), UnitUID: u.record.uid, Charges: a.charges}
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		for _, m := range v.Members {
			rec.Members = append(rec.Members, record.Placement{Member: m.Index, Node: node, Incarnation: v.Incarnation, Assignment: m.Assignment})
		}
	}
	rec.By = a.by
	switch {
	case u.ending != nil:
		rec.Reason, rec.GraceSeconds = u.ending.Reason, u.ending.GraceSeconds
	case a.notice != nil:
		rec.Reason, rec.GraceSeconds, rec.Evicted = a.notice.Reason, a.notice.GraceSeconds, true
	}
	return rec
}

// writeReleasing asks for COMMITTED or EVICTING → RELEASING.
func (t *term) writeReleasing(a *attempt, e txn.WriteReleasing) {
	u, tx := a.unit, a.machine.ID()
	rec := t.recordOf(a, grant.RecordReleasing)
	rec.Evicted = e.Evicted
	r := u.record
	r.phase = terminating
	t.submit(decision{
		what: "release of " + short(tx), compares: []record.Compare{record.ModRevIs(txKey(tx), a.machine.Revision())},
		ops: []op{{txKey(tx), rec}, {unitKey(u.client.name), r}},
		done: func(o txn.Outcome, rev resource.Revision) {
			t.step(a, txn.ReleasingAnswered{Outcome: o, Revision: rev})
		},
	})
}

// writeReleased asks for RELEASING → RELEASED, which ends the charge.
func (t *term) writeReleased(a *attempt) {
	tx := a.machine.ID()
	t.submit(decision{
		what: "end of " + short(tx), compares: append(t.stillDead(a), record.ModRevIs(txKey(tx), a.machine.Revision())), ops: t.releasedOps(a),
		done: func(o txn.Outcome, rev resource.Revision) {
			answered := func() { t.step(a, txn.ReleasedAnswered{Outcome: o, Revision: rev}) }
			if o != txn.Conflict {
				answered()
				return
			}
			t.recheck(a, answered)
		},
	})
}
