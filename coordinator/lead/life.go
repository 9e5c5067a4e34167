package lead

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
)

// This file carries out the decisions of coordinator/life: which units of a job may be
// tried, which units start again, and when the job is over (ADR 73).

// hold is why a waiting unit is not tried, where that is not its owner's wish.
type hold uint8

const (
	noHold         hold = iota
	holdDelay           // until the instant of its next try
	holdThrottled       // as many units of its job run as its parallelism allows
	holdDependency      // a dependency of its job has not come true
)

// setHolds decides which waiting units of a job may be tried, and returns those for
// which that has changed.
func (l *Leader) setHolds(j *job) (changed []*unit) {
	if j.awaits() {
		return j.holdAll()
	}
	for _, u := range j.units {
		if u.hold == holdDependency {
			u.setHold(noHold)
			changed = append(changed, u)
		}
		u.boundRetry(l.post.Millis())
		switch wait := u.untilRetry(l.post.Millis()); {
		case wait > 0 && u.waiting() && u.hold != holdDelay:
			u.setHold(holdDelay)
			changed = append(changed, u)
		case wait <= 0 && u.hold == holdDelay:
			u.setHold(noHold)
			changed = append(changed, u)
		}
	}
	may := j.policy().MayStart(j.states())
	for i, u := range j.units {
		switch {
		case u.hold == holdDelay:
		case u.hold == noHold && !may[i] && u.waiting() && u.attempt == nil && u.adopting == "":
			u.setHold(holdThrottled)
			changed = append(changed, u)
		case u.hold == holdThrottled && (may[i] || !u.waiting()):
			u.setHold(noHold)
			changed = append(changed, u)
		}
	}
	return changed
}

// holdAll holds all units of a job that wait, because of a dependency.
func (j *job) holdAll() (changed []*unit) {
	for _, u := range j.units {
		if u.hold != holdDependency && u.waiting() && u.attempt == nil && u.adopting == "" {
			u.setHold(holdDependency)
			changed = append(changed, u)
		}
	}
	return changed
}

// holdUnits has those units of a job tried that may run now, and keeps the others from
// being tried.
func (l *Leader) holdUnits(j *job) {
	for _, u := range l.setHolds(j) {
		if !u.life.Gone() && u.stored != 0 && !u.life.EndAsked() && u.attempt == nil {
			l.offer(u)
			l.noteWaiting(u)
			l.notify(u)
		}
	}
}

// loadHolds sets the holds of all units that earlier leaders have stored.
func (l *Leader) loadHolds() error {
	for _, j := range l.work.jobs {
		l.setHolds(j)
	}
	return nil
}

// awaitRetry sets the alarm for the next try of a unit.
func (l *Leader) awaitRetry(u *unit) {
	wait := u.untilRetry(l.post.Millis())
	if wait <= 0 || u.hold != holdDelay {
		return
	}
	l.post.After(wait, func() {
		if !u.life.Gone() && u.job != nil {
			l.holdUnits(u.job)
			l.awaitRetry(u)
		}
	})
}

// afterFailure is the outcome of a unit whose member has failed: the unit waits for its
// next try, or has failed for good. text says which member and how.
func (l *Leader) afterFailure(u *unit, text string) *record.Outcome {
	p := u.job.policy()
	switch next := p.AfterFailure(u.job.retries()); {
	case next.Retry > 0:
		return &record.Outcome{Phase: string(api.Pending), Message: text, Retry: next.Retry}
	case next.Exhausted && p.BackoffLimit > 0:
		text += fmt.Sprintf("; the job has used the %d retries of its backoffLimit", p.BackoffLimit)
	}
	return &record.Outcome{Phase: string(api.Failed), Message: text}
}

// startsAgain writes into a unit's record that the unit waits for its next try, or that
// its time is over before. It reports whether the unit waits.
func (l *Leader) startsAgain(a *attempt, r *record.Unit) bool {
	o := a.outcome
	if a.unit.job == nil || a.unit.job.isEnding() || a.unit.isSurplus() {
		r.Phase, r.Reason = string(api.Cancelled), "its job ends"
		return false
	}
	if o.Retry > 0 {
		delay := life.Delay(o.Retry)
		next := l.post.Millis() + delay.Milliseconds()
		if t, limited := limitOf(a); limited && t.end() <= next && t.outcome.Phase == string(api.Failed) {
			r.Phase, r.End = t.outcome.Phase, record.RetryBeyondDeadline
			r.Reason = fmt.Sprintf("%s; not tried again: the next try, %s later, would start after the %s of activeDeadlineSeconds", o.Message, delay, t.length)
			return false
		}
		r.Retries++
		r.Retry, r.RetryMillis = o.Retry, next
	}
	r.Phase, r.Failure, r.Reason, r.Started, r.Ended = string(api.Pending), o.Message, "", "", ""
	if r.FirstReadyMillis == 0 {
		r.FirstReadyMillis = a.ready.AtMillis
	}
	if r.ActiveSinceMillis == 0 {
		r.ActiveSinceMillis = a.ready.AtMillis
	}
	return true
}

// endUnwanted asks for the end of the units that a job wants no more: all where it was
// cancelled or has failed, those that would grow a gang which has ended, and those
// beyond its number of members.
func (l *Leader) endUnwanted(j *job) {
	if j.gone || j.stored == 0 {
		return
	}
	if c := j.record.Cancelled; c != nil {
		for _, u := range j.units {
			l.endSince(u, releaseOf(*c), c.AskedMillis)
		}
		return
	}
	l.endSurplus(j)
	l.endReplacements(j)
	reason := j.whyUnwanted()
	if reason == "" {
		return
	}
	for _, u := range j.units {
		if !u.phase().Ended() && !u.life.EndAsked() {
			asked := txn.ReleaseAsked{Reason: Clip(reason)}
			if u.hasWork() {
				asked.GraceSeconds = DefaultGrace
			}
			l.end(u, asked)
		}
	}
}

// whyUnwanted is why the units of a job that still go on are to end, "" where they are not.
func (j *job) whyUnwanted() string {
	switch e := j.policy().EndOf(j.states()); {
	case e.Stops && isOverdueEnd(j.units[e.Of]):
		return "" // finishOverdue ends the others
	case e.Stops:
		return "the job has failed: " + j.units[e.Of].record.Reason
	case j.gang && hasWorkEnded(j.units[0]):
		return "the first unit of the gang has ended"
	}
	return ""
}
