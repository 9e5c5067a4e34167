package lead

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
)

// This file ends units whose time is over (ADR 63). The ttl counts from the
// first instant at which all agents held the unit's members. activeDeadlineSeconds counts
// from the first such instant since the unit has last come from the queue, and goes on over
// retries. Both instants are in the store, so a later leader ends the unit at the same time.

// limitTime ends a unit that runs once its time is over.
func (l *Leader) limitTime(a *work.Attempt) {
	t, limited := work.LimitOf(a)
	if !limited {
		return
	}
	tx := a.Machine.ID()
	var run func()
	run = func() {
		if l.work.Attempts[tx] == a {
			l.expire(a, t)
			l.post.After(expireAgain, run) // the store may refuse the end
		}
	}
	l.post.After(max(0, time.Duration(t.End()-l.post.Millis())*time.Millisecond), run)
}

// expireAgain is the time after which a unit whose time is over, and that still holds
// something, is looked at again.
const expireAgain = 30 * time.Second

// expire ends a unit whose time is over. A unit that ends already goes on doing so.
func (l *Leader) expire(a *work.Attempt, t work.TimeLimit) {
	u := a.Unit
	if a.Machine.State() != txn.Committed || u.Life.EndAsked() || a.Notice != nil {
		return
	}
	a.SetOutcome(&t.Outcome)
	l.post.Info("time_is_over", "unit", u.Path, "phase", t.Outcome.Phase, "message", t.Outcome.Message)
	asked := txn.ReleaseAsked{Reason: t.Outcome.Message}
	if u.HasWork() { // nothing tells a launcher that has attached nothing
		asked.GraceSeconds = DefaultGrace
	}
	l.end(u, asked)
}

// limitTimes is limitTime of all units that an earlier leader has started.
func (l *Leader) limitTimes() {
	for _, path := range slices.Sorted(maps.Keys(l.work.Units)) {
		if u := l.work.Units[path]; u.Attempt != nil {
			l.limitTime(u.Attempt)
		}
	}
}
