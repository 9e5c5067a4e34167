package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// evict gives a running unit notice, for no preemptor. What cannot be evicted
// now stays as it is: a victim that has been claimed gets its notice anyway.
func (l *Leader) evict(u *unit, notice txn.EvictAsked) {
	if u.attempt == nil || u.life.EndAsked() {
		return
	}
	l.post.Info("evicting", "unit", u.path, "grace_seconds", notice.GraceSeconds, "reason", notice.Reason)
	l.step(u.attempt, notice)
}

// writeEvicting asks for COMMITTED → EVICTING, for no preemptor.
func (l *Leader) writeEvicting(a *attempt, e txn.WriteEvicting) {
	notice, instant := txn.EvictAsked(e), l.post.Millis()
	l.post.Submit(post.Decision{
		Compares: []record.Compare{record.ModRevIs(record.TxKey(a.machine.ID()), a.machine.Revision())},
		Ops:      l.evictingOps(a, notice, instant, ""),
		Done: func(o txn.Outcome, rev resource.Revision, _ error) {
			if o == txn.Landed {
				a.setNoticed(instant)
			}
			l.step(a, txn.EvictingAnswered{Outcome: o, Revision: rev})
		},
	})
}

// evictingOps are the writes of EVICTING, with the notice at an instant.
func (l *Leader) evictingOps(a *attempt, notice txn.EvictAsked, instant int64, by resource.TxID) []record.Op {
	rec := l.recordOf(a, grant.RecordEvicting)
	rec.By, rec.Reason, rec.GraceSeconds, rec.EndingMillis, rec.Evicted = by, notice.Reason, notice.GraceSeconds, instant, true
	unit := a.unit.record
	unit.Phase, unit.Reason = string(api.Terminating), notice.Reason
	a.setRequeues(a.unit.job == nil && a.unit.isSuspended())
	unit.Requeues = a.requeues
	return []record.Op{
		record.Put(record.TxKey(a.machine.ID()), record.MustEncode(rec)),
		record.Put(unit.Path().Key(), record.MustEncode(unit)),
	}
}

// underNotice makes a unit Terminating: its eviction is durable. Members that
// have grown a gang are of no use without the first: they leave with it.
func (l *Leader) underNotice(a *attempt, e txn.AckEvicting) {
	u := a.unit
	a.receiveNotice(txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: e.Reason})
	u.receiveNotice(e.Reason, e.Revision)
	l.post.Count(post.MetricEvictions, "")
	l.writeWish(u)
	l.notify(u)
	l.evictMates(a, e)
	l.evictGang(a, txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: "its gang was evicted: " + e.Reason})
	if u.job == nil || !u.job.gang || u.record.N > 0 {
		return
	}
	for _, growth := range u.job.units[1:] {
		l.evict(growth, txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: "its gang was evicted: " + e.Reason})
	}
	l.endReplacements(u.job)
}

// evictMates gives notice to the other members of a group that has lost one by an
// eviction. A member that its owner suspends, and one whose node is dead, leave alone.
func (l *Leader) evictMates(a *attempt, e txn.AckEvicting) {
	if a.unit.group == nil || a.unit.isSuspended() || a.lost {
		return
	}
	for _, mate := range a.unit.group.units {
		if mate.evictable() {
			l.evict(mate, txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: "its group was evicted: " + e.Reason})
		}
	}
}

// unitEnd is what becomes of a unit when its transaction is RELEASED.
//
// Invariant: it is fixed with the first Txn that writes it, whichever of
// several lands.
type unitEnd struct {
	record record.Unit
	// waiting is why a unit that waits again is not tried at once; nil for another unit.
	waiting *record.Waiting
	// removed: an allocation that its owner has deleted, or a replacement whose gang does not
	// run any more.
	removed bool
	// requeued: a job's unit that was evicted or whose work starts again, or an
	// allocation that its owner has suspended, is back at its place in the order.
	requeued bool
}

// endOfUnit: what its owner ends is Cancelled and, if it is an allocation, gone;
// an evicted allocation is Preempted and stays to be seen; an evicted job, and an
// allocation that its owner has suspended, go on waiting, at the place that they had.
func (l *Leader) endOfUnit(a *attempt) *unitEnd {
	u := a.unit
	e := &unitEnd{record: u.record}
	r := &e.record
	r.TxID, r.Lost, r.Ended, r.EndedMillis = "", nil, l.post.Stamp(), l.post.Millis()
	if u.work() != nil || len(a.work) > 0 { // also of a unit that waits again: its output is kept
		r.Exits, r.LastTx = a.exits(), a.machine.ID()
	}
	switch {
	case u.record.Replaces && (u.life.EndAsked() || !u.isWanted()):
		r.Phase, e.removed = string(api.Cancelled), true
	case a.outcome != nil && a.outcome.Phase == string(api.Pending):
		if e.requeued = l.startsAgain(a, r); e.requeued && r.RetryMillis != 0 {
			w := shown.RestartBackOff(r.Failure, r.Retry, u.job.policy().BackoffLimit, r.RetryMillis)
			w.SinceMillis = l.post.Millis()
			e.waiting = &w
		}
	case a.outcome != nil:
		r.Phase, r.End, r.Reason = a.outcome.Phase, a.outcome.EndedBy(), a.outcome.Message
	case u.life.EndAsked() || a.notice == nil:
		r.Phase, e.removed = string(api.Cancelled), u.job == nil
	case u.record.Requeues:
		r.Phase, r.Reason, r.Started, r.Requeues, e.requeued = string(api.Pending), "", "", false, true
		if r.FirstReadyMillis == 0 {
			r.FirstReadyMillis = a.ready.AtMillis
		}
	case u.job == nil && a.lost:
		r.Phase, r.Reason = string(api.Failed), a.notice.Reason
	case u.job == nil:
		r.Phase, r.Reason = string(api.Preempted), a.notice.Reason
	default:
		r.Phase, r.Reason, r.Started, e.requeued = string(api.Pending), "", "", true
		if r.FirstReadyMillis == 0 {
			r.FirstReadyMillis = a.ready.AtMillis
		}
		r.ActiveSinceMillis = 0
	}
	if e.requeued {
		r.Ended, r.EndedMillis = "", 0
	}
	if e.requeued && u.job != nil {
		r.Priority = l.priorityOf(u.job)
	}
	return e
}

func (e *unitEnd) ops() []record.Op {
	key := e.record.Path().Key()
	switch {
	case e.removed:
		return []record.Op{record.Delete(key)}
	case e.requeued:
		return []record.Op{
			record.Put(key, record.MustEncode(e.record)),
			record.Put(e.record.Order().Key(), record.MustEncode(record.Order{UnitUID: e.record.UID, Waiting: e.waiting})),
		}
	}
	return []record.Op{record.Put(key, record.MustEncode(e.record))}
}

// onUnitReleased takes over what became of a unit whose transaction is RELEASED.
func (l *Leader) onUnitReleased(a *attempt) {
	u := a.unit
	e := a.closing
	if e == nil { // another has written it
		e = l.endOfUnit(a)
	}
	if e.requeued && e.record.Priority != u.record.Priority {
		l.removeConsumer(u) // the trees know its priority
	}
	l.keepExit(a)
	u.setReleased(e, a.machine.Revision())
	l.work.mapMembers(u)
	l.census.note(u)
	switch {
	case e.requeued:
		l.post.Info("unit_requeued", "unit", u.path)
		if a.outcome != nil { // the wish was to end this run
			u.dropWish()
		}
		if u.life.EndAsked() { // asked for in the meantime
			l.endQueued(u)
			return
		}
		l.waitAgain(u, a.notice)
	case e.removed || u.job != nil:
		l.finish(u)
	case u.life.EndAsked() && a.outcome == nil:
		l.endQueued(u)
	default:
		if a.outcome != nil { // an allocation has ended with its time
			u.dropWish()
		}
		l.removeConsumer(u)
		l.notify(u)
		l.noteFinishedUnit(u)
	}
}

// waitAgain goes on with a unit that is back at its place in the order. Its job may have
// ended in the meantime.
func (l *Leader) waitAgain(u *unit, evicted *txn.EvictAsked) {
	if u.job != nil {
		l.holdUnits(u.job)
		l.awaitRetry(u)
		if u.record.Priority != l.priorityOf(u.job) { // that has changed since the Txn was made
			l.awaitPriorities(u.job, 0)
		}
	}
	if evicted != nil {
		l.requeue(u, *evicted)
	} else {
		l.offer(u)
	}
	l.notify(u)
	if u.job != nil {
		l.finishJob(u.job)
	}
}
