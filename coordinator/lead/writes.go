package lead

import (
	"cmp"
	"fmt"

	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"

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
func (l *Leader) writeCommit(a *work.Attempt) {
	if !l.mayDisplace(a) || !a.MayMend() {
		l.step(a, txn.CommitAnswered{Outcome: txn.Conflict}) // nothing was sent
		return
	}
	d, err := l.commitOf(a)
	if err != nil { // judgeReply lets nothing through that cannot be written
		l.post.Error("commit_not_made", "tx", a.Machine.ID(), "unit", a.Unit.Path, "error", Clip(err.Error()))
		l.step(a, txn.CommitAnswered{Outcome: txn.Conflict})
		return
	}
	l.post.Submit(d)
}

// commitOf makes the commit of what the votes promise.
func (l *Leader) commitOf(a *work.Attempt) (post.Decision, error) {
	u, tx := a.Unit, a.Machine.ID()
	a.SetCharges(l.quotas.Seated(u.Path, a.Charges))
	rec := record.Tx{
		State: grant.RecordCommitted, Epoch: l.post.Epoch(), Unit: u.Record.Path(), UnitUID: u.Record.UID, Tenant: u.Record.Tenant,
		Charges: a.Charges, Alternative: u.Number, Committed: l.post.Stamp(), CommittedMillis: l.post.Millis(), Port: l.choosePort(a),
	}
	// model: mutant NO_ABSENT_COMPARE
	d := post.Decision{Compares: []record.Compare{record.Absent(record.TxKey(tx)), record.ModRevIs(u.Record.Path().Key(), u.Stored)}}
	d.Compares = append(d.Compares, a.GangCompares()...)
	for _, node := range a.Machine.Nodes() {
		v, _ := a.Machine.Vote(node)
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
	if len(rec.Members) != u.Record.Members {
		return d, fmt.Errorf("votes for %d members, the unit has %d", len(rec.Members), u.Record.Members)
	}
	committed, err := record.PutRecord(record.TxKey(tx), rec)
	if err != nil {
		return d, err
	}
	unit := u.Record
	unit.Phase, unit.TxID, unit.StartByMillis, unit.RetryMillis = string(api.Running), tx, 0, 0
	a.SetStarted(rec.Committed, rec.CommittedMillis)
	if unit.Started == "" {
		unit.Started = a.Started
	}
	d.Ops = append(d.Ops, committed, record.MustPutRecord(unit.Path().Key(), unit))
	if u.Queued {
		d.Ops = append(d.Ops, record.Delete(unit.Order().Key()))
	}
	if u.Create != nil {
		d.Compares = append(d.Compares, u.Create.Compares...)
		d.Ops = append(d.Ops, u.Create.Ops...)
	}
	for _, v := range a.Victims {
		// model: mutant SWAP_WITHOUT_VICTIM_STATE
		d.Compares = append(append(d.Compares, l.deadNodeCompares(v)...), record.ModRevIs(record.TxKey(v.Machine.ID()), v.Machine.Revision()))
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
				if other := l.work.Attempts[w.Tx]; other != nil && o == txn.Landed && rev > other.Ready.Revision {
					other.SetReady(other.Ready.Written(w.Ready, rev))
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
func (l *Leader) recordStaleVotes(a *work.Attempt) {
	for _, id := range a.Machine.Nodes() {
		at := l.identityOf(id)
		if v, voted := a.Machine.Vote(id); voted && at != 0 && v.Revision != at {
			a.Fail(id, breaker.Unregistered)
		}
	}
}

// writeAborted fences: whichever Txn creates the record first decides.
func (l *Leader) writeAborted(a *work.Attempt) {
	tx := a.Machine.ID()
	rec := record.Tx{State: grant.RecordAborted, Epoch: l.post.Epoch(), UnitUID: a.Unit.Record.UID, Reason: "given up by the leader", Ended: l.post.Stamp()}
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
func (l *Leader) recordOf(a *work.Attempt, state grant.RecordState) record.Tx {
	u := a.Unit
	_, epoch, _, err := a.Machine.ID().Attempt() // of the leader that committed
	if err != nil {
		panic("coordinator: " + err.Error())
	}
	rec := record.Tx{
		State: state, Epoch: epoch, Unit: u.Record.Path(), UnitUID: u.Record.UID, Tenant: u.Record.Tenant,
		Charges: a.Charges, Alternative: u.Number, Committed: cmp.Or(a.Started, u.Record.Started), CommittedMillis: a.StartedMillis, Port: a.Port,
	}
	for _, node := range a.Machine.Nodes() {
		v, _ := a.Machine.Vote(node)
		for _, m := range v.Members {
			rec.Members = append(rec.Members, record.Placement{Member: m.Index, Node: node, Incarnation: v.Incarnation, Assignment: m.Assignment})
		}
	}
	rec.By, rec.Lost, rec.LostMembers, rec.Outcome = a.By, a.Lost, a.LostMembers, a.OutcomeNow()
	switch {
	case u.Life.EndAsked():
		rec.Reason, rec.GraceSeconds, rec.EndingMillis = u.Life.Ending().Reason, u.Life.Ending().GraceSeconds, u.Life.Asked()
	case a.Notice != nil:
		rec.Reason, rec.GraceSeconds, rec.EndingMillis, rec.Evicted = a.Notice.Reason, a.Notice.GraceSeconds, post.MillisOf(a.Noticed), true
	}
	return rec
}

// writeReleasing asks for COMMITTED or EVICTING → RELEASING.
func (l *Leader) writeReleasing(a *work.Attempt, e txn.WriteReleasing) {
	u, tx := a.Unit, a.Machine.ID()
	rec := l.recordOf(a, grant.RecordReleasing)
	rec.Evicted, rec.GraceKept = e.Evicted, e.Kept
	if !e.Evicted {
		defer l.post.ActFor(u.Life.Asker())()
	}
	unit := u.Record
	unit.Phase, unit.Reason = string(api.Terminating), e.Reason
	l.post.Submit(post.Decision{
		Compares: []record.Compare{record.ModRevIs(record.TxKey(tx), a.Machine.Revision())},
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
func (l *Leader) writeReleased(a *work.Attempt) {
	l.partly.Close(a.Machine.ID(), l.post.Millis())
	l.post.Submit(post.Decision{ // model: mutant RELEASE_WITHOUT_STATE
		Compares: append(l.deadNodeCompares(a), record.ModRevIs(record.TxKey(a.Machine.ID()), a.Machine.Revision())),
		Ops:      l.releasedOps(a),
		Done: func(o txn.Outcome, rev resource.Revision, _ error) {
			answered := func() { l.step(a, txn.ReleasedAnswered{Outcome: o, Revision: rev}) }
			if o != txn.Landed {
				l.partly.Reopen(a.Machine.ID(), a.Machine.Nodes(), l.post.Now())
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
func (l *Leader) releasedOps(a *work.Attempt) []record.Op {
	tx := a.Machine.ID()
	if a.Closing == nil {
		a.SetClosing(l.endOfUnit(a))
	}
	rec := l.recordOf(a, grant.RecordReleased)
	a.SetUnheard(l.unheardOf(a))
	rec.Ended, rec.EndedMillis, rec.Unheard = l.post.Stamp(), l.partly.End(tx, len(a.Machine.Nodes()), l.post.Millis()), a.Unheard
	if exits := a.Exits(); a.Closing.Removed && rec.Outcome == nil && len(exits) > 0 { // the unit keeps none
		rec.Outcome = &record.Outcome{Phase: a.Closing.Record.Phase, Exits: exits}
	}
	ops := []record.Op{record.Put(record.TxKey(tx), record.MustEncode(rec))}
	for _, node := range a.Machine.Nodes() {
		ops = append(ops, record.Delete(record.NodeTxKey(node, tx)))
	}
	if freed := l.partly.AtEnd(tx, rec.EndedMillis, a.Machine.By() != "", l.post.Now()); len(freed) > 0 && a.Ready.Lacks(freed) {
		l.retired.keepReady(tx)
		ops = append(ops, record.MustPutRecord(record.ReadyKey(tx), l.partly.With(tx, a.Ready, freed)))
	}
	return append(ops, a.Closing.Ops()...)
}

// identityOf is the revision of a node's registration, as far as the store has
// been followed; 0 for none.
func (l *Leader) identityOf(id resource.NodeID) resource.Revision {
	if n := l.nodes[id]; n != nil {
		return n.identity
	}
	return 0
}
