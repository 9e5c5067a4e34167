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
func (l *Leader) waitingOf(u *work.Unit) record.Waiting {
	switch {
	case u.IsSuspended():
		reason := ""
		if u.Job != nil {
			reason = u.Job.Record.Suspended
		}
		return shown.Suspended(u.Record.Kind, u.Record.Namespace, u.Record.Name, reason)
	case u.Hold == work.HoldDependency:
		return shown.WaitingForDependency(l.wantsOf(u.Job))
	case u.Hold == work.HoldDelay:
		return u.RetryOf()
	case u.Hold == work.HoldThrottled:
		return shown.ParallelismReached(u.Job.Doc.AtOnce())
	case u.Gathers():
		if n := u.Group.ArrivedWith(u); n < u.Group.Rule.MinMembers {
			return shown.WaitingForGang(n, u.Group.Rule.MinMembers, u.Group.ID)
		}
	}
	if b := l.blockOf(u); b != nil {
		return shown.WaitingForQueue(waitingForQueue(b))
	}
	switch e := l.evidenceOf(u); {
	case u.Preempting():
		return shown.Preempting(u.Attempt.Nomination())
	case u.Life.Phase() == work.Resting && u.Wait.Refusals > 0:
		reason := "an attempt came to nothing"
		if u.Wait.Failed.Node != "" {
			reason = "node " + string(u.Wait.Failed.Node) + ": " + u.Wait.Failed.String()
		}
		return shown.Refused(u.Wait.Refusals, Clip(reason), u.Wait.Rested)
	case e != nil && e.Short != nil:
		return shown.OverQuota(l.quotas.Reasons(e.Short)[0].Detail)
	case e != nil:
		return shown.NoPlace(u.Record.Namespace, u.Record.Name)
	}
	return record.Waiting{}
}

// waitingNow is waitingOf with the verdict whether the unit can ever run.
func (l *Leader) waitingNow(u *work.Unit) record.Waiting {
	w := l.waitingOf(u)
	if w.Code == "" && u.Wait.Fate.Message != "" {
		w = shown.Untried()
	}
	l.addFate(&w, &u.Wait.Fate, u.Wait.Told.Waiting)
	return w
}

// orderOf is the value of the order key of a unit that is stored, with why it waits.
func (l *Leader) orderOf(u *work.Unit) record.Order {
	o := record.Order{UnitUID: u.Record.UID}
	if w := l.waitingNow(u); w.Code != "" {
		w.SinceMillis = l.post.Millis()
		o.Waiting = &w
	}
	u.Wait.SetTold(work.Told{Waiting: o.Waiting, At: l.post.Now()})
	return o
}
