package lead

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
)

// This file carries out the decisions of coordinator/life: which units of a job may be
// tried, which units start again, and when the job is over (ADR 73).

// setHolds decides which waiting units of a job may be tried, and returns those for
// which that has changed.
func (l *Leader) setHolds(j *work.Job) (changed []*work.Unit) {
	if j.Awaits() {
		return j.HoldAll()
	}
	for _, u := range j.Units {
		if u.Hold == work.HoldDependency {
			u.SetHold(work.NoHold)
			changed = append(changed, u)
		}
		u.BoundRetry(l.post.Millis())
		switch wait := u.UntilRetry(l.post.Millis()); {
		case wait > 0 && u.Waiting() && u.Hold != work.HoldDelay:
			u.SetHold(work.HoldDelay)
			changed = append(changed, u)
		case wait <= 0 && u.Hold == work.HoldDelay:
			u.SetHold(work.NoHold)
			changed = append(changed, u)
		}
	}
	may := j.Policy().MayStart(j.States())
	for i, u := range j.Units {
		switch {
		case u.Hold == work.HoldDelay:
		case u.Hold == work.NoHold && !may[i] && u.Waiting() && u.Attempt == nil && u.Adopting == "":
			u.SetHold(work.HoldThrottled)
			changed = append(changed, u)
		case u.Hold == work.HoldThrottled && (may[i] || !u.Waiting()):
			u.SetHold(work.NoHold)
			changed = append(changed, u)
		}
	}
	return changed
}

// holdUnits has those units of a job tried that may run now, and keeps the others from
// being tried.
func (l *Leader) holdUnits(j *work.Job) {
	for _, u := range l.setHolds(j) {
		if !u.Life.Gone() && u.Stored != 0 && !u.Life.EndAsked() && u.Attempt == nil {
			l.offer(u)
			l.noteWaiting(u)
			l.notify(u)
		}
	}
}

// loadHolds sets the holds of all units that earlier leaders have stored.
func (l *Leader) loadHolds() error {
	for _, j := range l.work.Jobs {
		l.setHolds(j)
	}
	return nil
}

// awaitRetry sets the alarm for the next try of a unit.
func (l *Leader) awaitRetry(u *work.Unit) {
	wait := u.UntilRetry(l.post.Millis())
	if wait <= 0 || u.Hold != work.HoldDelay {
		return
	}
	l.post.After(wait, func() {
		if !u.Life.Gone() && u.Job != nil {
			l.holdUnits(u.Job)
			l.awaitRetry(u)
		}
	})
}

// afterFailure is the outcome of a unit whose member has failed: the unit waits for its
// next try, or has failed for good. text says which member and how.
func (l *Leader) afterFailure(u *work.Unit, text string) *record.Outcome {
	p := u.Job.Policy()
	switch next := p.AfterFailure(u.Job.Retries()); {
	case next.Retry > 0:
		return &record.Outcome{Phase: string(api.Pending), Message: text, Retry: next.Retry}
	case next.Exhausted && p.BackoffLimit > 0:
		text += fmt.Sprintf("; the job has used the %d retries of its backoffLimit", p.BackoffLimit)
	}
	return &record.Outcome{Phase: string(api.Failed), Message: text}
}

// startsAgain writes into a unit's record that the unit waits for its next try, or that
// its time is over before. It reports whether the unit waits.
func (l *Leader) startsAgain(a *work.Attempt, r *record.Unit) bool {
	o := a.Outcome
	if a.Unit.Job == nil || a.Unit.Job.IsEnding() || a.Unit.IsSurplus() {
		r.Phase, r.Reason = string(api.Cancelled), "its job ends"
		return false
	}
	if o.Retry > 0 {
		delay := life.Delay(o.Retry)
		next := l.post.Millis() + delay.Milliseconds()
		if t, limited := work.LimitOf(a); limited && t.End() <= next && t.Outcome.Phase == string(api.Failed) {
			r.Phase, r.End = t.Outcome.Phase, record.RetryBeyondDeadline
			r.Reason = fmt.Sprintf("%s; not tried again: the next try, %s later, would start after the %s of activeDeadlineSeconds", o.Message, delay, t.Length)
			return false
		}
		r.Retries++
		r.Retry, r.RetryMillis = o.Retry, next
	}
	r.Phase, r.Failure, r.Reason, r.Started, r.Ended = string(api.Pending), o.Message, "", "", ""
	if r.FirstReadyMillis == 0 {
		r.FirstReadyMillis = a.Ready.AtMillis
	}
	if r.ActiveSinceMillis == 0 {
		r.ActiveSinceMillis = a.Ready.AtMillis
	}
	return true
}

// endUnwanted asks for the end of the units that a job wants no more: all where it was
// cancelled or has failed, those that would grow a gang which has ended, and those
// beyond its number of members.
func (l *Leader) endUnwanted(j *work.Job) {
	if j.Gone || j.Stored == 0 {
		return
	}
	if c := j.Record.Cancelled; c != nil {
		for _, u := range j.Units {
			l.endSince(u, releaseOf(*c), c.AskedMillis)
		}
		return
	}
	l.endSurplus(j)
	l.endReplacements(j)
	reason := j.WhyUnwanted()
	if reason == "" {
		return
	}
	for _, u := range j.Units {
		if !u.Phase().Ended() && !u.Life.EndAsked() {
			asked := txn.ReleaseAsked{Reason: Clip(reason)}
			if u.HasWork() {
				asked.GraceSeconds = DefaultGrace
			}
			l.end(u, asked)
		}
	}
}
