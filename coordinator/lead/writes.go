package lead

import (
	"cmp"
	"fmt"

	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/post"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// writeCommit asks for the commit point: record, unit and per-node index, if
// this epoch still leads, the record is absent, the unit is what it was, and
// every member's agent still is the incarnation that said Yes.
//
// That of a preemptor also releases its victims (PROTOCOL.md 6.5).
func (l *Leader) writeCommit(a *attempt) {
	if !l.mayDisplace(a) || !a.mayMend() {
		l.step(a, txn.CommitAnswered{Outcome: txn.Conflict}) // nothing was sent
		return
	}
	d, err := l.commitOf(a)
	if err != nil { // judgeReply lets nothing through that cannot be written
		l.post.Error("commit_not_made", "tx", a.machine.ID(), "unit", a.unit.path, "error", Clip(err.Error()))
		l.step(a, txn.CommitAnswered{Outcome: txn.Conflict})
		return
	}
	l.post.Submit(d)
}

// commitOf makes the commit of what the votes promise.
func (l *Leader) commitOf(a *attempt) (post.Decision, error) {
	u, tx := a.unit, a.machine.ID()
	a.setCharges(l.quotas.Seated(u.path, a.charges))
	rec := record.Tx{
		State: grant.RecordCommitted, Epoch: l.post.Epoch(), Unit: u.record.Path(), UnitUID: u.record.UID, Tenant: u.record.Tenant,
		Charges: a.charges, Alternative: u.number, Committed: l.post.Stamp(), CommittedMillis: l.post.Millis(), Port: l.choosePort(a),
	}
	// model: mutant NO_ABSENT_COMPARE
	d := post.Decision{Compares: []record.Compare{record.Absent(record.TxKey(tx)), record.ModRevIs(u.record.Path().Key(), u.stored)}}
	d.Compares = append(d.Compares, a.gangCompares()...)
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		// model: mutant NO_INCARNATION_COMPARE
		d.Compares = append(d.Compares, record.ModRevIs(record.NodeIdentityKey(node), v.Revision))
		index := record.NodeTx{}
		for _, m := range v.Members {
			rec.Members = append(rec.Members, record.Placement{Member: m.Index, Node: node, Incarnation: v.Incarnation, Assignment: m.Assignment})
			index.Members = append(index.Members, m.Index)
		}
		value, err := record.Encode(index)
		if err != nil {
			return d, err
		}
		d.Ops = append(d.Ops, record.Put(record.NodeTxKey(node, tx), value))
	}
	if len(rec.Members) != u.record.Members {
		return d, fmt.Errorf("votes for %d members, the unit has %d", len(rec.Members), u.record.Members)
	}
	committed, err := record.PutRecord(record.TxKey(tx), rec)
	if err != nil {
		return d, err
	}
	unit := u.record
	unit.Phase, unit.TxID, unit.StartByMillis, unit.RetryMillis = string(api.Running), tx, 0, 0
	a.setStarted(rec.Committed, rec.CommittedMillis)
	if unit.Started == "" {
		unit.Started = a.started
	}
	d.Ops = append(d.Ops, committed, record.MustPutRecord(unit.Path().Key(), unit))
	if u.queued {
		d.Ops = append(d.Ops, record.Delete(unit.Order().Key()))
	}
	if u.create != nil {
		d.Compares = append(d.Compares, u.create.compares...)
		d.Ops = append(d.Ops, u.create.ops...)
	}
	for _, v := range a.victims {
		// model: mutant SWAP_WITHOUT_VICTIM_STATE
		d.Compares = append(append(d.Compares, l.deadNodeCompares(v)...), record.ModRevIs(record.TxKey(v.machine.ID()), v.machine.Revision()))
		d.Ops = append(d.Ops, l.releasedOps(v)...)
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if err != nil {
			l.post.Warn("commit_failed", "tx", tx, "outcome", o, "error", err)
		}
		if o == txn.Conflict {
			l.recordStaleVotes(a)
		}
		l.step(a, txn.CommitAnswered{Outcome: o, Revision: rev})
	}
	if !l.partly.IsEmpty() {
		answered, writes := d.Done, l.carryPartly(a, &d)
		d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
			for _, w := range writes {
				l.partly.Answered(w.Tx, w.Ready)
				if other := l.work.attempts[w.Tx]; other != nil && o == txn.Landed && rev > other.ready.Revision {
					other.setReady(other.ready.Written(w.Ready, rev))
					l.noteStarted(other)
				}
			}
			answered(o, rev, err)
		}
	}
	return d, nil
}

// recordStaleVotes notes the nodes that have voted under a registration other than the
// store's, as far as this coordinator has followed it.
func (l *Leader) recordStaleVotes(a *attempt) {
	for _, id := range a.machine.Nodes() {
		at := l.identityOf(id)
		if v, voted := a.machine.Vote(id); voted && at != 0 && v.Revision != at {
			a.fail(id, breaker.Unregistered)
		}
	}
}

// writeAborted fences: whichever Txn creates the record first decides.
func (l *Leader) writeAborted(a *attempt) {
	tx := a.machine.ID()
	rec := record.Tx{State: grant.RecordAborted, Epoch: l.post.Epoch(), UnitUID: a.unit.record.UID, Reason: "given up by the leader", Ended: l.post.Stamp()}
	l.post.Submit(post.Decision{
		AnyEpoch: true,
		Compares: []record.Compare{record.Absent(record.TxKey(tx))},
		Ops:      []record.Op{record.Put(record.TxKey(tx), record.MustEncode(rec))},
		Done: func(o txn.Outcome, _ resource.Revision, _ error) {
			l.step(a, txn.FenceAnswered{Outcome: o})
		},
	})
}

// recordOf rebuilds the record of a committed transaction from its votes.
func (l *Leader) recordOf(a *attempt, state grant.RecordState) record.Tx {
	u := a.unit
	_, epoch, _, err := a.machine.ID().Attempt() // of the leader that committed
	if err != nil {
		panic("coordinator: " + err.Error())
	}
	rec := record.Tx{
		State: state, Epoch: epoch, Unit: u.record.Path(), UnitUID: u.record.UID, Tenant: u.record.Tenant,
		Charges: a.charges, Alternative: u.number, Committed: cmp.Or(a.started, u.record.Started), CommittedMillis: a.startedMillis, Port: a.port,
	}
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		for _, m := range v.Members {
			rec.Members = append(rec.Members, record.Placement{Member: m.Index, Node: node, Incarnation: v.Incarnation, Assignment: m.Assignment})
		}
	}
	rec.By, rec.Lost, rec.LostMembers, rec.Outcome = a.by, a.lost, a.lostMembers, a.outcomeNow()
	switch {
	case u.life.EndAsked():
		rec.Reason, rec.GraceSeconds, rec.EndingMillis = u.life.Ending().Reason, u.life.Ending().GraceSeconds, u.life.Asked()
	case a.notice != nil:
		rec.Reason, rec.GraceSeconds, rec.EndingMillis, rec.Evicted = a.notice.Reason, a.notice.GraceSeconds, post.MillisOf(a.noticed), true
	}
	return rec
}

// writeReleasing asks for COMMITTED or EVICTING → RELEASING.
func (l *Leader) writeReleasing(a *attempt, e txn.WriteReleasing) {
	u, tx := a.unit, a.machine.ID()
	rec := l.recordOf(a, grant.RecordReleasing)
	rec.Evicted, rec.GraceKept = e.Evicted, e.Kept
	if !e.Evicted {
		defer l.post.ActFor(u.life.Asker())()
	}
	unit := u.record
	unit.Phase, unit.Reason = string(api.Terminating), e.Reason
	l.post.Submit(post.Decision{
		Compares: []record.Compare{record.ModRevIs(record.TxKey(tx), a.machine.Revision())},
		Ops: []record.Op{
			record.Put(record.TxKey(tx), record.MustEncode(rec)),
			record.Put(unit.Path().Key(), record.MustEncode(unit)),
		},
		Done: func(o txn.Outcome, rev resource.Revision, _ error) {
			l.step(a, txn.ReleasingAnswered{Outcome: o, Revision: rev})
		},
	})
}

// writeReleased asks for RELEASING → RELEASED, which ends the charge.
func (l *Leader) writeReleased(a *attempt) {
	l.partly.Close(a.machine.ID(), l.post.Millis())
	l.post.Submit(post.Decision{ // model: mutant RELEASE_WITHOUT_STATE
		Compares: append(l.deadNodeCompares(a), record.ModRevIs(record.TxKey(a.machine.ID()), a.machine.Revision())),
		Ops:      l.releasedOps(a),
		Done: func(o txn.Outcome, rev resource.Revision, _ error) {
			answered := func() { l.step(a, txn.ReleasedAnswered{Outcome: o, Revision: rev}) }
			if o != txn.Landed {
				l.partly.Reopen(a.machine.ID(), a.machine.Nodes(), l.post.Now())
			}
			if o != txn.Conflict {
				answered()
				return
			}
			l.recheck(a, answered)
		},
	})
}

// releasedOps are the writes of RELEASED: the record, the index entries, and
// what becomes of the unit.
func (l *Leader) releasedOps(a *attempt) []record.Op {
	tx := a.machine.ID()
	if a.closing == nil {
		a.setClosing(l.endOfUnit(a))
	}
	rec := l.recordOf(a, grant.RecordReleased)
	a.setUnheard(l.unheardOf(a))
	rec.Ended, rec.EndedMillis, rec.Unheard = l.post.Stamp(), l.partly.End(tx, len(a.machine.Nodes()), l.post.Millis()), a.unheard
	if exits := a.exits(); a.closing.removed && rec.Outcome == nil && len(exits) > 0 { // the unit keeps none
		rec.Outcome = &record.Outcome{Phase: a.closing.record.Phase, Exits: exits}
	}
	ops := []record.Op{record.Put(record.TxKey(tx), record.MustEncode(rec))}
	for _, node := range a.machine.Nodes() {
		ops = append(ops, record.Delete(record.NodeTxKey(node, tx)))
	}
	if freed := l.partly.AtEnd(tx, rec.EndedMillis, a.machine.By() != "", l.post.Now()); len(freed) > 0 && a.ready.Lacks(freed) {
		l.retired.keepReady(tx)
		ops = append(ops, record.MustPutRecord(record.ReadyKey(tx), l.partly.With(tx, a.ready, freed)))
	}
	return append(ops, a.closing.ops()...)
}

// identityOf is the revision of a node's registration, as far as the store has
// been followed; 0 for none.
func (l *Leader) identityOf(id resource.NodeID) resource.Revision {
	if n := l.nodes[id]; n != nil {
		return n.identity
	}
	return 0
}
