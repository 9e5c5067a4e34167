package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// evict gives a running unit notice, for no preemptor. What cannot be evicted
// now stays as it is: a victim that has been claimed gets its notice anyway.
func (l *Leader) evict(u *work.Unit, notice txn.EvictAsked) {
	if u.Attempt == nil || u.Life.EndAsked() {
		return
	}
	l.post.Info("evicting", "unit", u.Path, "grace_seconds", notice.GraceSeconds, "reason", notice.Reason)
	l.step(u.Attempt, notice)
}

// writeEvicting asks for COMMITTED → EVICTING, for no preemptor.
func (l *Leader) writeEvicting(a *work.Attempt, e txn.WriteEvicting) {
	notice, instant := txn.EvictAsked(e), l.post.Millis()
	l.post.Submit(post.Decision{
		Compares: []record.Compare{record.ModRevIs(record.TxKey(a.Machine.ID()), a.Machine.Revision())},
		Ops:      l.evictingOps(a, notice, instant, ""),
		Done: func(o txn.Outcome, rev resource.Revision, _ error) {
			if o == txn.Landed {
				a.SetNoticed(instant)
			}
			l.step(a, txn.EvictingAnswered{Outcome: o, Revision: rev})
		},
	})
}

// evictingOps are the writes of EVICTING, with the notice at an instant.
func (l *Leader) evictingOps(a *work.Attempt, notice txn.EvictAsked, instant int64, by resource.TxID) []record.Op {
	rec := l.recordOf(a, grant.RecordEvicting)
	rec.By, rec.Reason, rec.GraceSeconds, rec.EndingMillis, rec.Evicted = by, notice.Reason, notice.GraceSeconds, instant, true
	unit := a.Unit.Record
	unit.Phase, unit.Reason = string(api.Terminating), notice.Reason
	a.SetRequeues(a.Unit.Job == nil && a.Unit.IsSuspended())
	unit.Requeues = a.Requeues
	return []record.Op{
		record.Put(record.TxKey(a.Machine.ID()), record.MustEncode(rec)),
		record.Put(unit.Path().Key(), record.MustEncode(unit)),
	}
}

// underNotice makes a unit Terminating: its eviction is durable. Members that
// have grown a gang are of no use without the first: they leave with it.
func (l *Leader) underNotice(a *work.Attempt, e txn.AckEvicting) {
	u := a.Unit
	a.ReceiveNotice(txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: e.Reason})
	u.ReceiveNotice(e.Reason, e.Revision)
	l.post.Count(post.MetricEvictions, "")
	l.writeEndRequest(u)
	l.notify(u)
	l.evictMates(a, e)
	l.evictGang(a, txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: "its gang was evicted: " + e.Reason})
	if u.Job == nil || !u.Job.Gang || u.Record.N > 0 {
		return
	}
	for _, growth := range u.Job.Units[1:] {
		l.evict(growth, txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: "its gang was evicted: " + e.Reason})
	}
	l.endReplacements(u.Job)
}

// evictMates gives notice to the other members of a group that has lost one by an
// eviction. A member that its owner suspends, and one whose node is dead, leave alone.
func (l *Leader) evictMates(a *work.Attempt, e txn.AckEvicting) {
	if a.Unit.Group == nil || a.Unit.IsSuspended() || a.Lost {
		return
	}
	for _, mate := range a.Unit.Group.Units {
		if mate.Evictable() {
			l.evict(mate, txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: "its group was evicted: " + e.Reason})
		}
	}
}

// endOfUnit: what its owner ends is Cancelled and, if it is an allocation, gone;
// an evicted allocation is Preempted and stays to be seen; an evicted job, and an
// allocation that its owner has suspended, go on waiting, at the place that they had.
func (l *Leader) endOfUnit(a *work.Attempt) *work.UnitEnd {
	u := a.Unit
	rec, removed, requeued := u.Record, false, false
	var waiting *record.Waiting
	r := &rec
	r.TxID, r.Lost, r.Ended, r.EndedMillis = "", nil, l.post.Stamp(), l.post.Millis()
	if u.Work() != nil || len(a.Work) > 0 { // also of a unit that waits again: its output is kept
		r.Exits, r.LastTx = a.Exits(), a.Machine.ID()
	}
	switch {
	case u.Record.Replaces && (u.Life.EndAsked() || !u.IsWanted()):
		r.Phase, removed = string(api.Cancelled), true
	case a.Outcome != nil && a.Outcome.Phase == string(api.Pending):
		if requeued = l.startsAgain(a, r); requeued && r.RetryMillis != 0 {
			w := shown.RestartBackOff(r.Failure, r.Retry, u.Job.Policy().BackoffLimit, r.RetryMillis)
			w.SinceMillis = l.post.Millis()
			waiting = &w
		}
	case a.Outcome != nil:
		r.Phase, r.End, r.Reason = a.Outcome.Phase, a.Outcome.EndedBy(), a.Outcome.Message
	case u.Life.EndAsked() || a.Notice == nil:
		r.Phase, removed = string(api.Cancelled), u.Job == nil
	case u.Record.Requeues:
		r.Phase, r.Reason, r.Started, r.Requeues, requeued = string(api.Pending), "", "", false, true
		if r.FirstReadyMillis == 0 {
			r.FirstReadyMillis = a.Ready.AtMillis
		}
	case u.Job == nil && a.Lost:
		r.Phase, r.Reason = string(api.Failed), a.Notice.Reason
	case u.Job == nil:
		r.Phase, r.Reason = string(api.Preempted), a.Notice.Reason
	default:
		r.Phase, r.Reason, r.Started, requeued = string(api.Pending), "", "", true
		if r.FirstReadyMillis == 0 {
			r.FirstReadyMillis = a.Ready.AtMillis
		}
		r.ActiveSinceMillis = 0
	}
	if requeued {
		r.Ended, r.EndedMillis = "", 0
	}
	if requeued && u.Job != nil {
		r.Priority = l.priorityOf(u.Job)
	}
	return &work.UnitEnd{Record: rec, Waiting: waiting, Removed: removed, Requeued: requeued}
}

// onUnitReleased takes over what became of a unit whose transaction is RELEASED.
func (l *Leader) onUnitReleased(a *work.Attempt) {
	u := a.Unit
	e := a.Closing
	if e == nil { // another has written it
		e = l.endOfUnit(a)
	}
	if e.Requeued && e.Record.Priority != u.Record.Priority {
		l.removeConsumer(u) // the trees know its priority
	}
	l.keepExit(a)
	u.SetReleased(e, a.Machine.Revision())
	l.work.MapMembers(u)
	l.census.Note(u)
	switch {
	case e.Requeued:
		l.post.Info("unit_requeued", "unit", u.Path)
		if a.Outcome != nil { // the request was to end this run
			u.DropEndRequest()
		}
		if u.Life.EndAsked() { // asked for in the meantime
			l.endQueued(u)
			return
		}
		l.waitAgain(u, a.Notice)
	case e.Removed || u.Job != nil:
		l.finish(u)
	case u.Life.EndAsked() && a.Outcome == nil:
		l.endQueued(u)
	default:
		if a.Outcome != nil { // an allocation has ended with its time
			u.DropEndRequest()
		}
		l.removeConsumer(u)
		l.notify(u)
		l.noteFinishedUnit(u)
	}
}

// waitAgain goes on with a unit that is back at its place in the order. Its job may have
// ended in the meantime.
func (l *Leader) waitAgain(u *work.Unit, evicted *txn.EvictAsked) {
	if u.Job != nil {
		l.holdUnits(u.Job)
		l.awaitRetry(u)
		if u.Record.Priority != l.priorityOf(u.Job) { // that has changed since the Txn was made
			l.awaitPriorities(u.Job, 0)
		}
	}
	if evicted != nil {
		l.requeue(u, *evicted)
	} else {
		l.offer(u)
	}
	l.notify(u)
	if u.Job != nil {
		l.finishJob(u.Job)
	}
}
