package lead

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
)

// This file puts units into the room of the waiting (coordinator/sched) and
// follows the trials of its passes.

// offer has a waiting unit tried if its class is tried, or holds a unit that
// cannot be tried now. Each step after which a unit may be tried ends here. A unit
// that waits no more is in no order.
func (l *Leader) offer(u *unit) {
	l.work.queueNews.note(u.path)
	if !u.waiting() {
		return
	}
	if u.gathers() {
		l.offerGroup(u.group)
		return
	}
	if !u.mayBeTried() || u.grows() || l.isHeldByQueue(u) {
		l.room.Hold(u.key)
		return
	}
	if u.attempt == nil {
		l.chooseForm(u, 0)
	}
	first, others := u.demands()
	l.room.Offer(u.key, l.traitsOf(u), first, others...)
}

// traitsOf are what a unit has in common with all that are admitted, placed and
// refused as it is.
func (l *Leader) traitsOf(u *unit) sched.Traits {
	charge := u.chargesKey()
	if l.quotas.Limits().CountsUsers(u.record.Namespace) {
		charge += fmt.Sprintf(" of %q", u.Charge.User)
	}
	return sched.Traits{
		Demand: u.demandKey(), Relation: l.relationOf(u), Charge: charge, Namespace: u.record.Namespace, Queue: l.boundedQueue(u), Priority: u.record.Priority,
		Right: u.right(), Refusable: l.isRefusable(u),
	}
}

// relationOf is equal for units that other units treat alike, "" where these decide nothing.
func (l *Leader) relationOf(u *unit) string {
	relation := u.Demand.Subject.Key(l.state.Relates(u.record.Namespace))
	if u.joins() {
		relation += " joins " + u.Demand.Subject.Group
		if own := u.subgroup(); own.end > 0 {
			relation += fmt.Sprintf(" from %d on", own.first)
		}
	}
	return relation
}

// isRefusable reports whether a unit over quota is refused instead of waiting.
func (l *Leader) isRefusable(u *unit) bool {
	return u.create != nil && u.job == nil && !l.queuesOverQuota(u.record.Namespace)
}

// trial carries out what a pass of the room asks for.
type trial struct{ *Leader }

// Try tries a unit (sched.Trial).
func (t trial) Try(k queue.Key, backstop bool) *sched.Evidence {
	l := t.Leader
	l.takeQueueNews()
	u := l.work.units[k.Path]
	if u == nil || !u.waiting() || u.life.EndAsked() {
		l.room.Remove(k)
		return nil
	}
	if !u.mayBeTried() || u.grows() || l.isHeldByQueue(u) {
		l.room.Hold(k) // the end of what it waits for offers it
		l.storeHeld(u)
		return nil
	}
	if u.gathers() && !slices.Contains(u.group.offered, u) || u.gathers() && len(u.group.ready()) < u.group.rule.MinMembers {
		l.room.Hold(k)
		l.offerGroup(u.group) // the start of the others offers it, or their arrival
		return nil
	}
	last, ends := l.evidenceOf(u), backstop && l.someoneEnds()
	e := l.try(u)
	if e == nil && backstop && l.isMissed(u, last, ends) {
		l.post.Count(post.MetricMissedWakes, "")
		l.post.Error("missed_wake", "unit", u.path)
	}
	l.takeNews()
	return e
}

// isMissed reports whether an event should have woken a unit that only the backstop
// has tried. Time and takes of others are no events: the room of units that leave
// may suffice no more, or others use its quota; then the end of these wakes it.
func (l *Leader) isMissed(u *unit, last *sched.Evidence, someoneEnds bool) bool {
	switch {
	case u.attempt == nil || last == nil || l.isAlarmDue():
		return false
	case u.attempt.claims:
		return last.Of(u.number).Short != nil && !someoneEnds
	}
	return !u.attempt.isPreempting() || !someoneEnds
}

// Wait lets a unit share the evidence of its class (sched.Trial). A new unit is
// refused, or stored: its waiting must survive this leader.
func (t trial) Wait(path string, e *sched.Evidence) {
	l := t.Leader
	u := l.work.units[path]
	if u == nil || !u.mayBeTried() {
		return
	}
	if u.setEvidence(e); u.create == nil && !u.told.agrees(e) {
		l.noteWaiting(u)
	}
	if l.isRefusable(u) && e.OverQuota() {
		u.fail(overQuota(l.quotas.Reasons(e.Short)))
		l.undoCreation(u)
		return
	}
	if u.create != nil {
		l.enqueue(u)
	}
}

// offerAgain gives the waiting units of a namespace other classes: from now on rules
// of other units may tell them apart by their labels.
func (l *Leader) offerAgain(namespace string) {
	for _, k := range l.room.Order().Head(l.room.Order().Len()) {
		if u := l.work.units[k.Path]; u != nil && u.record.Namespace == namespace && l.room.Offered(k.Path) {
			l.offer(u)
		}
	}
}
