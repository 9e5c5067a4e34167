package lead

import (
	"iter"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is what a simulation compares with the store and the ledgers, between
// two inputs (test/sim). Nothing of it changes what the leader does.

// Phase is a unit's, by its path; false where the leader knows no such unit.
func (l *Leader) Phase(path string) (api.Phase, bool) {
	u := l.units[path]
	if u == nil {
		return "", false
	}
	return u.phase(), true
}

// Offer is what placement knows of a node. It must not be changed.
func (l *Leader) Offer(id resource.NodeID) *cluster.Node { return &l.nodes[id].view }

// Accused reports whether a node is isolated.
func (l *Leader) Accused(id resource.NodeID) bool {
	n := l.nodes[id]
	return n != nil && n.violation() != nil
}

// Unheard are the terminal records that wait for nodes to tell of themselves.
func (l *Leader) Unheard() iter.Seq2[resource.TxID, map[resource.NodeID]bool] {
	return func(yield func(resource.TxID, map[resource.NodeID]bool) bool) {
		for tx, nodes := range l.retired.unheard {
			if !yield(tx, nodes) {
				return
			}
		}
	}
}

// Overlooked names, after a pass, a unit that waits for room and could begin on
// the state as it is: what made the room has woken nobody. "" where there is none.
// A unit that waits for something else is left out: a backoff, a Txn of its own,
// an adoption.
func (l *Leader) Overlooked() string {
	active := l.queue.Active()
	for _, key := range l.queue.Head(l.queue.Len()) {
		u := l.units[key.Path]
		if u == nil || !u.waiting() || u.ending != nil || !u.mayBeTried() || u.grows() {
			continue
		}
		if slices.Contains(active, key) || l.couldBegin(u) {
			return key.Path
		}
	}
	return ""
}

// couldBegin reports whether a unit could be admitted and placed now, or could
// begin a preemption.
func (l *Leader) couldBegin(u *unit) bool {
	if u.attempt != nil || l.judge(u) != nil {
		return false
	}
	demand := u.demand
	demand.Avoid = u.avoid
	if plan, ok := place.Place(l.order, demand); ok {
		wide := l.tooWide(plan)
		place.Undo(plan)
		return wide == ""
	}
	if u.policy != preemptLower || !l.mayEvict(u) {
		return false
	}
	if leaving := l.leaving(); len(leaving) > 0 {
		if _, ok := preempt.With(l.order, u.demand, leaving); ok {
			return false
		}
	}
	if l.someoneEnds() {
		return false
	}
	plan, ok := preempt.Find(l.order, u.demand, u.record.Priority, l.holders(u, nil))
	return ok && len(plan.Victims) > 0 && l.opsOfPreemption(u, l.unitsOf(plan.Victims)) <= l.maxOps
}

// unitsOf are the units of these paths.
func (l *Leader) unitsOf(paths []string) []*unit {
	units := make([]*unit, len(paths))
	for i, path := range paths {
		units[i] = l.units[path]
	}
	return units
}

// someoneEnds reports whether a unit that is leaving is going to end, which wakes
// everything: others may have taken some of the room meanwhile that a unit
// counted on.
func (l *Leader) someoneEnds() bool {
	away := func(id resource.NodeID) bool { return !l.nodes[id].view.Ready }
	for _, a := range l.attempts {
		if !slices.ContainsFunc(a.machine.Nodes(), away) && (a.unit.isLeavingSoon() || a.machine.State() == txn.Reading) {
			return true
		}
	}
	return false
}
