package sim

import (
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is the search for lost wake-ups: a unit that was tried in vain and
// not woken since must fail again.

// checkWaiting tries, after a pass, each unit that waits for room on the state
// as it is. A unit that waits for something else is left out: a backoff, a Txn
// of its own, an adoption.
func (t *term) checkWaiting() {
	if t.ended || t.sim.bug == HeadPassedOver {
		return
	}
	active := t.queue.Active()
	for _, key := range t.queue.Head(t.queue.Len()) {
		u := t.units[key.Path]
		switch {
		case u == nil || u.record.phase != pending || u.ending != nil || u.resting || u.adopting != nil:
		case slices.Contains(active, key):
			t.sim.fail("wake", "%s was not tried in a pass", key.Path)
		case t.fits(u):
			t.sim.fail("wake", "%s waits although there is room, and nothing wakes it", key.Path)
		}
	}
}

// fits reports whether a unit could be admitted and placed now, or could begin
// a preemption.
func (t *term) fits(u *unit) bool {
	if u.attempt != nil || u.writing || !t.admit(u) {
		return false
	}
	must(t.trees.UndoAllocate(treeName, u.client.name))
	if plan, ok := place.Place(t.order, u.client.demand); ok {
		place.Undo(plan)
		return true
	}
	if !t.mayEvict(u) || t.hasRoomSoon(u) || slices.ContainsFunc(u.counted, t.ends) {
		return false
	}
	plan, ok := preempt.Find(t.order, u.client.demand, u.client.priority, t.preemptible(u))
	return ok && len(plan.Victims) > 0
}

// ends reports whether an attempt that was leaving is going to end, which wakes
// everything: others may have taken some of the room meanwhile that a unit
// counted on.
func (t *term) ends(a *attempt) bool {
	away := func(n resource.NodeID) bool { return !t.nodes[n].view.Ready }
	return t.attempts[a.machine.ID()] == a && !slices.ContainsFunc(a.machine.Nodes(), away) &&
		(a.unit.leavesSoon() || a.machine.State() == txn.Reading)
}
