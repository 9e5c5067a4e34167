package lead

import (
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// This file writes why units wait, for readers: with the unit's place in the order
// when that is stored, then once a second for units with news. A unit has news when
// its code has changed, and when its message has and the last write is old enough.

// waitingOf is why a unit waits now.
func (l *Leader) waitingOf(u *unit) record.Waiting {
	switch {
	case u.isSuspended():
		reason := ""
		if u.job != nil {
			reason = u.job.record.Suspended
		}
		return shown.Suspended(u.record.Kind, u.record.Namespace, u.record.Name, reason)
	case u.hold == holdDependency:
		return shown.WaitingForDependency(l.wantsOf(u.job))
	case u.hold == holdDelay:
		return u.retryOf()
	case u.hold == holdThrottled:
		return shown.ParallelismReached(u.job.doc.AtOnce())
	case u.gathers():
		if n := u.group.arrivedWith(u); n < u.group.rule.MinMembers {
			return shown.WaitingForGang(n, u.group.rule.MinMembers, u.group.id)
		}
	}
	if b := l.blockOf(u); b != nil {
		return shown.WaitingForQueue(waitingForQueue(b))
	}
	switch e := l.evidenceOf(u); {
	case u.preempting():
		return shown.Preempting(u.attempt.nomination())
	case u.life.Phase() == work.Resting && u.refusals > 0:
		reason := "an attempt came to nothing"
		if u.failed.node != "" {
			reason = "node " + string(u.failed.node) + ": " + u.failed.String()
		}
		return shown.Refused(u.refusals, Clip(reason), u.rested)
	case e != nil && e.Short != nil:
		return shown.OverQuota(l.quotas.Reasons(e.Short)[0].Detail)
	case e != nil:
		return shown.NoPlace(u.record.Namespace, u.record.Name)
	}
	return record.Waiting{}
}

// waitingNow is waitingOf with the verdict whether the unit can ever run.
func (l *Leader) waitingNow(u *unit) record.Waiting {
	w := l.waitingOf(u)
	if w.Code == "" && u.fate.message != "" {
		w = shown.Untried()
	}
	l.addFate(&w, &u.fate, u.told.waiting)
	return w
}

// orderOf is the value of the order key of a unit that is stored, with why it waits.
func (l *Leader) orderOf(u *unit) record.Order {
	o := record.Order{UnitUID: u.record.UID}
	if w := l.waitingNow(u); w.Code != "" {
		w.SinceMillis = l.post.Millis()
		o.Waiting = &w
	}
	u.setTold(told{waiting: o.Waiting, at: l.post.Now()})
	return o
}
