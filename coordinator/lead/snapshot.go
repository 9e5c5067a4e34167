package lead

import (
	"maps"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
)

// This file lets others read the scheduling state outside of the leader's loop.

// snapshot is the scheduling state as it is now.
func (l *Leader) snapshot() *whatif.Snapshot {
	return &whatif.Snapshot{
		Nodes: l.occupied().Snapshot(), Limits: l.quotas.Limits().Snapshot(), Trees: l.quotas.Trees().Snapshot(), Forest: charges.Forest,
		Closed: maps.Clone(l.quotas.Closed()), MaxOps: l.post.MaxOps(),
	}
}

// asked is a unit as questions outside of the leader's loop see it.
func (l *Leader) asked(u *work.Unit) *whatif.Unit {
	l.updateRuntimes()
	l.bind(u)
	of := u.Wanted()
	of.Demand.Policy = l.policyFor(u.Record.Queue)
	of.Avoid = maps.Clone(of.Avoid)
	return &whatif.Unit{Unit: *of, Owner: string(u.Record.Tenant), Kind: u.Groups.Type, Unpreemptable: u.Groups.Unpreemptable}
}

// world is the state that decisions read and change.
func (l *Leader) world() *sched.World {
	return &sched.World{
		State: l.state, Refresh: func() { l.occupied() }, Limits: l.quotas.Limits(), Trees: l.quotas.Trees(), Forest: charges.Forest, Closed: l.quotas.Closed(), MaxOps: l.post.MaxOps(),
	}
}

// someoneEnds reports whether a unit that is leaving is going to end, which wakes
// everything: others may have taken some of the room meanwhile that a unit
// counted on.
func (l *Leader) someoneEnds() bool {
	w := l.world()
	for _, status := range [...]cluster.Status{cluster.Leaving, cluster.Displaced, cluster.InDoubt} {
		for o := range l.occupied().WithStatus(status) {
			if w.IsReached(o) {
				return true
			}
		}
	}
	return false
}
