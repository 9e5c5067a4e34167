package lead

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
)

// This file ends the units of jobs whose time is over (ADR 63). The ttl counts from the
// first instant at which all agents held the unit's members. activeDeadlineSeconds counts
// from the first such instant since the unit has last come from the queue, and goes on over
// retries. Both instants are in the store, so a later leader ends the unit at the same time.

// longestLimit bounds a limit, so that no instant overflows.
const longestLimit = 100 * 365 * 24 * time.Hour

// Words that begin the reason of a unit whose time is over.
const (
	deadlineExceeded = "DeadlineExceeded"
	ttlExpired       = "TTLExpired"
)

// timeLimit is a limit of the time that a unit runs.
type timeLimit struct {
	since   int64 // an instant, in milliseconds
	length  time.Duration
	outcome record.Outcome
}

// end is the instant at which the unit is ended.
func (t timeLimit) end() int64 { return t.since + (t.length + clockError).Milliseconds() }

// limitOf is the limit of a unit's time that ends first; false where there is none. There
// is none either where a leader of an older version has stored no instant of the start.
func limitOf(a *attempt) (first timeLimit, limited bool) {
	u := a.unit
	if u.job == nil || u.job.doc == nil || a.ready.instant == 0 {
		return timeLimit{}, false
	}
	if seconds := u.job.doc.Spec.ActiveDeadlineSeconds; seconds != nil {
		since := cmp.Or(u.record.ActiveSinceMillis, a.ready.instant)
		length := longestLimit
		if *seconds < int64(longestLimit/time.Second) {
			length = time.Duration(*seconds) * time.Second
		}
		first, limited = timeLimit{since, length, record.Outcome{
			Phase: string(api.Failed), Message: fmt.Sprintf("%s: the unit has run for the %s of activeDeadlineSeconds", deadlineExceeded, length),
		}}, true
	}
	ttl, err := time.ParseDuration(u.job.doc.Spec.Template.Spec.TTL)
	if err != nil { // none is given: others were refused at the submission
		return first, limited
	}
	since := u.record.FirstReadyMillis
	if since == 0 {
		since = a.ready.instant
	}
	t := timeLimit{since, min(ttl, longestLimit), record.Outcome{
		Phase: string(api.Succeeded), Message: fmt.Sprintf("%s: the %s of ttl have passed since the unit has first run", ttlExpired, ttl),
	}}
	if !limited || t.end() < first.end() {
		return t, true
	}
	return first, limited
}

// limitTime ends a unit that runs once its time is over.
func (l *Leader) limitTime(a *attempt) {
	t, limited := limitOf(a)
	if !limited {
		return
	}
	tx := a.machine.ID()
	var run func()
	run = func() {
		if l.attempts[tx] == a {
			l.expire(a, t)
			l.after(expireAgain, run) // the store may refuse the end
		}
	}
	l.after(max(0, time.Duration(t.end()-l.millis())*time.Millisecond), run)
}

// expireAgain is the time after which a unit whose time is over, and that still holds
// something, is looked at again.
const expireAgain = 30 * time.Second

// expire ends a unit whose time is over. A unit that ends already goes on doing so.
func (l *Leader) expire(a *attempt, t timeLimit) {
	u := a.unit
	if a.machine.State() != txn.Committed || u.ending != nil || a.notice != nil {
		return
	}
	a.setOutcome(&t.outcome)
	l.out.info("time_is_over", "unit", u.path, "phase", t.outcome.Phase, "message", t.outcome.Message)
	asked := txn.ReleaseAsked{Reason: t.outcome.Message}
	if u.work() != nil { // nothing tells a launcher of others before the end
		asked.GraceSeconds = DefaultGrace
	}
	l.end(u, asked)
}

// limitTimes is limitTime of all units that an earlier leader has started.
func (l *Leader) limitTimes() {
	for _, name := range slices.Sorted(maps.Keys(l.jobs)) {
		for _, u := range l.jobs[name].units {
			if u.attempt != nil {
				l.limitTime(u.attempt)
			}
		}
	}
}
