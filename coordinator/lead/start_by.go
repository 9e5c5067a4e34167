package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file ends work that has not started by its time. The instant is written with the
// unit, so every leader finds it; the commit clears it, so work that waits again after
// an eviction has no end.

// awaitStart sets the alarm for a unit that has to start by an instant.
func (l *Leader) awaitStart(u *work.Unit) {
	if u.Record.StartByMillis == 0 {
		return
	}
	l.post.After(l.untilOverdue(u), func() { l.endOverdue(u) })
}

// untilOverdue is how long the unit may wait from now on.
func (l *Leader) untilOverdue(u *work.Unit) time.Duration {
	return max(0, time.Duration(u.Record.StartByMillis-l.post.Millis())*time.Millisecond+work.ClockError)
}

// isOverdue reports whether the unit should have started.
func (l *Leader) isOverdue(u *work.Unit) bool {
	return u.Record.StartByMillis != 0 && u.Waiting() && l.untilOverdue(u) <= 0
}

// endOverdue ends a unit that has not started by its time. An attempt that may still
// commit decides first.
func (l *Leader) endOverdue(u *work.Unit) {
	if u.Life.Gone() || u.Life.EndAsked() || l.work.Units[u.Path] != u || !l.isOverdue(u) {
		return
	}
	switch {
	case u.Attempt != nil:
		l.step(u.Attempt, txn.BudgetSpent{}) // aborted ends the unit
		return
	case u.Adopting != "":
		l.abandon(l.adoptions[u.Adopting])
		l.post.After(firstBackoff, func() { l.endOverdue(u) })
		return
	case u.Stored == 0 || u.Life.IsBeingWritten():
		l.post.After(firstBackoff, func() { l.endOverdue(u) })
		return
	}
	l.writeOverdue(u)
}

// writeOverdue writes that the unit has failed.
func (l *Leader) writeOverdue(u *work.Unit) {
	kind, text := u.OverdueEnd()
	l.writeFailed(u, kind, text, func() { l.endOverdue(u) }, func() { l.finishOverdue(u) })
}

// writeFailed ends a unit that holds nothing as Failed, with the kind and the reason of
// its end. then follows; again is tried later where the store does not take the end.
func (l *Leader) writeFailed(u *work.Unit, kind record.EndKind, text string, again, then func()) {
	u.Life.Begin(work.WriteFailure)
	l.room.Hold(u.Key)
	key, unit := u.Record.Path().Key(), u.Record
	unit.Phase, unit.End, unit.Reason = string(api.Failed), kind, text
	unit.Ended, unit.EndedMillis = l.post.Stamp(), l.post.Millis()
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, u.Stored)}}
	if u.Queued {
		d.Ops = append(d.Ops, record.Delete(unit.Order().Key()))
	}
	d.Ops = append(d.Ops, record.Put(key, record.MustEncode(unit)))
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		u.Life.Finish(work.WriteFailure)
		if o != txn.Landed {
			l.post.Warn("failure_not_written", "unit", u.Path, "outcome", o, "error", err)
			if u.Life.EndAsked() { // asked for meanwhile: again does nothing for it
				l.endQueued(u)
				return
			}
			l.offer(u)
			l.post.After(lastBackoff, again)
			return
		}
		l.room.Remove(u.Key)
		u.End(unit, rev)
		l.census.Note(u)
		l.post.Info("failed_before_start", "unit", u.Path, "reason", unit.Reason)
		then()
	}
	l.post.Settle(d, key, post.Wrote(key, func(rec record.Unit) bool { return api.Phase(rec.Phase) == api.Failed }))
}

// finishOverdue goes on with the object of a unit that has failed: an allocation stays
// to be seen, and a job ends with its first members.
func (l *Leader) finishOverdue(u *work.Unit) {
	if u.Life.EndAsked() {
		l.endQueued(u)
		return
	}
	if u.Job == nil {
		l.removeConsumer(u)
		l.notify(u)
		l.noteFinishedUnit(u)
		return
	}
	for _, o := range u.Job.Units[1:] {
		o.SetStartBy(u.Record.StartByMillis)
		l.endOverdue(o)
	}
	l.finish(u)
}

// startBy is the instant until which something may wait that has arrived at since, 0
// for no end.
func startBy(since int64, wait time.Duration) int64 {
	if wait <= 0 {
		return 0
	}
	return since + max(1, wait.Milliseconds())
}

// setStartBy sets the instant until which a new unit may wait.
func (l *Leader) setStartBy(u *work.Unit, wait time.Duration) {
	u.SetStartBy(startBy(l.post.Millis(), wait))
}
