package lead

import (
	"fmt"
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

// clockError is how much later than an instant of a record a leader acts: another
// leader's clock may have written the instant.
const clockError = 2 * time.Second

// awaitStart sets the alarm for a unit that has to start by an instant.
func (l *Leader) awaitStart(u *unit) {
	if u.record.StartByMillis == 0 {
		return
	}
	l.post.After(l.untilOverdue(u), func() { l.endOverdue(u) })
}

// untilOverdue is how long the unit may wait from now on.
func (l *Leader) untilOverdue(u *unit) time.Duration {
	return max(0, time.Duration(u.record.StartByMillis-l.post.Millis())*time.Millisecond+clockError)
}

// isOverdue reports whether the unit should have started.
func (l *Leader) isOverdue(u *unit) bool {
	return u.record.StartByMillis != 0 && u.waiting() && l.untilOverdue(u) <= 0
}

// endOverdue ends a unit that has not started by its time. An attempt that may still
// commit decides first.
func (l *Leader) endOverdue(u *unit) {
	if u.life.Gone() || u.life.EndAsked() || l.work.units[u.path] != u || !l.isOverdue(u) {
		return
	}
	switch {
	case u.attempt != nil:
		l.step(u.attempt, txn.BudgetSpent{}) // aborted ends the unit
		return
	case u.adopting != "":
		l.abandon(l.adoptions[u.adopting])
		l.post.After(firstBackoff, func() { l.endOverdue(u) })
		return
	case u.stored == 0 || u.life.IsBeingWritten():
		l.post.After(firstBackoff, func() { l.endOverdue(u) })
		return
	}
	l.writeOverdue(u)
}

// writeOverdue writes that the unit has failed.
func (l *Leader) writeOverdue(u *unit) {
	kind, text := u.overdueEnd()
	l.writeFailed(u, kind, text, func() { l.endOverdue(u) }, func() { l.finishOverdue(u) })
}

// writeFailed ends a unit that holds nothing as Failed, with the kind and the reason of
// its end. then follows; again is tried later where the store does not take the end.
func (l *Leader) writeFailed(u *unit, kind record.EndKind, text string, again, then func()) {
	u.life.Begin(work.WriteFailure)
	l.room.Hold(u.key)
	key, unit := u.record.Path().Key(), u.record
	unit.Phase, unit.End, unit.Reason = string(api.Failed), kind, text
	unit.Ended, unit.EndedMillis = l.post.Stamp(), l.post.Millis()
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, u.stored)}}
	if u.queued {
		d.Ops = append(d.Ops, record.Delete(unit.Order().Key()))
	}
	d.Ops = append(d.Ops, record.Put(key, record.MustEncode(unit)))
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		u.life.Finish(work.WriteFailure)
		if o != txn.Landed {
			l.post.Warn("failure_not_written", "unit", u.path, "outcome", o, "error", err)
			if u.life.EndAsked() { // asked for meanwhile: again does nothing for it
				l.endQueued(u)
				return
			}
			l.offer(u)
			l.post.After(lastBackoff, again)
			return
		}
		l.room.Remove(u.key)
		u.end(unit, rev)
		l.census.note(u)
		l.post.Info("failed_before_start", "unit", u.path, "reason", unit.Reason)
		then()
	}
	l.post.Settle(d, key, post.Wrote(key, func(rec record.Unit) bool { return api.Phase(rec.Phase) == api.Failed }))
}

// finishOverdue goes on with the object of a unit that has failed: an allocation stays
// to be seen, and a job ends with its first members.
func (l *Leader) finishOverdue(u *unit) {
	if u.life.EndAsked() {
		l.endQueued(u)
		return
	}
	if u.job == nil {
		l.removeConsumer(u)
		l.notify(u)
		l.noteFinishedUnit(u)
		return
	}
	for _, o := range u.job.units[1:] {
		o.setStartBy(u.record.StartByMillis)
		l.endOverdue(o)
	}
	l.finish(u)
}

// overdueEnd is the kind of the end of a unit that has not started by its time, and says
// why with its numbers.
func (u *unit) overdueEnd() (record.EndKind, string) {
	kind, text := u.explainOverdue()
	return kind, string(kind) + ": " + text
}

func (u *unit) explainOverdue() (record.EndKind, string) {
	switch {
	case u.job != nil && u.job.gang:
		return record.GangTimeout, fmt.Sprintf("the %d members that start together had no place within %s", u.job.units[0].record.Members, u.job.doc.MaxWait())
	case u.job != nil:
		return record.WaitTimeout, fmt.Sprintf("it had no place within %s", u.job.doc.MaxWait())
	case u.group == nil:
		return record.WaitTimeout, fmt.Sprintf("it had no place within %s", u.allocation.Group().MaxWait)
	case u.group.hasFormed():
		return record.GangTimeout, fmt.Sprintf("its group %s runs, and had no place for it within %s", u.group.id, u.group.rule.MaxWait)
	}
	arrived := 0
	for _, o := range u.group.units {
		if o.stored != 0 && (o.waiting() || isOverdueEnd(o)) {
			arrived++
		}
	}
	if arrived < u.group.rule.MinMembers {
		return record.GangTimeout, fmt.Sprintf("%d of %d members of group %s had arrived within %s", arrived, u.group.rule.MinMembers, u.group.id, u.group.rule.MaxWait)
	}
	return record.GangTimeout, fmt.Sprintf("the %d members of group %s had no place within %s", u.group.rule.MinMembers, u.group.id, u.group.rule.MaxWait)
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
func (l *Leader) setStartBy(u *unit, wait time.Duration) {
	u.setStartBy(startBy(l.post.Millis(), wait))
}
