package lead

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
)

// This file puts units into the room of the waiting (coordinator/sched) and
// follows the trials of its passes.

// offer has a waiting unit tried if its class is tried, or holds a unit that
// cannot be tried now. Each step after which a unit may be tried ends here. A unit
// that waits no more is in no order.
func (l *Leader) offer(u *work.Unit) {
	l.work.QueueNews.Note(u.Path)
	if !u.Waiting() {
		return
	}
	if u.Gathers() {
		l.offerGroup(u.Group)
		return
	}
	if !u.MayBeTried() || u.Grows() || l.isHeldByQueue(u) {
		l.room.Hold(u.Key)
		return
	}
	if u.Attempt == nil {
		l.chooseForm(u, 0)
	}
	first, others := u.Demands()
	l.room.Offer(u.Key, l.traitsOf(u), first, others...)
}

// traitsOf are what a unit has in common with all that are admitted, placed and
// refused as it is.
func (l *Leader) traitsOf(u *work.Unit) sched.Traits {
	charge := u.ChargesKey()
	if l.quotas.Limits().CountsUsers(u.Record.Namespace) {
		charge += fmt.Sprintf(" of %q", u.Charge.User)
	}
	return sched.Traits{
		Demand: u.DemandKey(), Relation: l.relationOf(u), Charge: charge, Namespace: u.Record.Namespace, Queue: l.boundedQueue(u), Priority: u.Record.Priority,
		Right: u.Right(), Refusable: l.isRefusable(u),
	}
}

// relationOf is equal for units that other units treat alike, "" where these decide nothing.
func (l *Leader) relationOf(u *work.Unit) string {
	relation := u.Demand.Subject.Key(l.state.Relates(u.Record.Namespace))
	if u.Joins() {
		relation += " joins " + u.Demand.Subject.Group
		if own := u.Subgroup(); own.End > 0 {
			relation += fmt.Sprintf(" from %d on", own.First)
		}
	}
	return relation
}

// isRefusable reports whether a unit over quota is refused instead of waiting.
func (l *Leader) isRefusable(u *work.Unit) bool {
	return u.Create != nil && u.Job == nil && !l.queuesOverQuota(u.Record.Namespace)
}

// trial carries out what a pass of the room asks for.
type trial struct{ *Leader }

// Try tries a unit (sched.Trial).
func (t trial) Try(k queue.Key, backstop bool) *sched.Evidence {
	l := t.Leader
	l.takeQueueNews()
	u := l.work.Units[k.Path]
	if u == nil || !u.Waiting() || u.Life.EndAsked() {
		l.room.Remove(k)
		return nil
	}
	if !u.MayBeTried() || u.Grows() || l.isHeldByQueue(u) {
		l.room.Hold(k) // the end of what it waits for offers it
		l.storeHeld(u)
		return nil
	}
	if u.Gathers() && !slices.Contains(u.Group.Offered, u) || u.Gathers() && len(u.Group.Ready()) < u.Group.Rule.MinMembers {
		l.room.Hold(k)
		l.offerGroup(u.Group) // the start of the others offers it, or their arrival
		return nil
	}
	last, ends := l.evidenceOf(u), backstop && l.someoneEnds()
	e := l.try(u)
	if e == nil && backstop && l.isMissed(u, last, ends) {
		l.post.Count(post.MetricMissedWakes, "")
		l.post.Error("missed_wake", "unit", u.Path)
	}
	l.takeNews()
	return e
}

// isMissed reports whether an event should have woken a unit that only the backstop
// has tried. Time and takes of others are no events: the room of units that leave
// may suffice no more, or others use its quota; then the end of these wakes it.
func (l *Leader) isMissed(u *work.Unit, last *sched.Evidence, someoneEnds bool) bool {
	switch {
	case u.Attempt == nil || last == nil || l.isAlarmDue():
		return false
	case u.Attempt.Claims:
		return last.Of(u.Number).Short != nil && !someoneEnds
	}
	return !u.Attempt.IsPreempting() || !someoneEnds
}

// Wait lets a unit share the evidence of its class (sched.Trial). A new unit is
// refused, or stored: its waiting must survive this leader.
func (t trial) Wait(path string, e *sched.Evidence) {
	l := t.Leader
	u := l.work.Units[path]
	if u == nil || !u.MayBeTried() {
		return
	}
	if u.Wait.SetEvidence(e); u.Create == nil && !u.Wait.Told.Agrees(e) {
		l.noteWaiting(u)
	}
	if l.isRefusable(u) && e.OverQuota() {
		u.Fail(overQuota(l.quotas.Reasons(e.Short)))
		l.undoCreation(u)
		return
	}
	if u.Create != nil {
		l.enqueue(u)
	}
}

// offerAgain gives the waiting units of a namespace other classes: from now on rules
// of other units may tell them apart by their labels.
func (l *Leader) offerAgain(namespace string) {
	for _, k := range l.room.Order().Head(l.room.Order().Len()) {
		if u := l.work.Units[k.Path]; u != nil && u.Record.Namespace == namespace && l.room.Offered(k.Path) {
			l.offer(u)
		}
	}
}
