package sched

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// preempts nominates a unit that was admitted and has no place: some of lower
// priority give way. False: no unit does, now, and the evidence says why.
func (w *World) preempts(u *Unit, d *Decision) bool {
	if u.Right != Lower {
		return false
	}
	d.Evidence.Code = NoVictims
	d.standing = w.StandingOf(u)
	d.Evidence.Borrows = d.standing.height > 0
	return w.nominate(u, nil, d)
}

// Claim nominates a unit whose quota other units use, as quota reports in the
// evidence. Those units are the victims, and further units of lower priority if the
// unit has that right. False: the evidence says why they do not give way.
func (w *World) Claim(u *Unit, d *Decision) bool {
	if u.Right == Nobody {
		return false
	}
	state, named := w.occupied(), d.Evidence.Short.Victims
	for _, path := range named {
		o := state.Occupant(path)
		switch {
		case o == nil:
			return d.noVictims(path + " is being adopted, and can give way only then")
		case o.Status == cluster.Contested:
			return d.noVictims(path + " has devices that are nominated to another unit")
		case o.Status == cluster.Evictable:
		case o.IsLeaving(), o.Claimed:
			return d.noVictims(path + " is leaving already")
		case len(o.Displaces) > 0 && queue.Compare(u.Key, keyOf(o)) < 0 && !w.wouldFitWithout(u, named, d.standing):
			return d.noVictims(path + " is about to take the place of others, and would leave no room")
		case len(o.Displaces) > 0 && queue.Compare(u.Key, keyOf(o)) < 0:
			d.Yields = path // u comes first
			return d.noVictims(path + " gives up what it was about to take")
		default:
			return d.noVictims(path + " is about to start, and can give way only then")
		}
	}
	return w.nominate(u, named, d)
}

// keyOf is the place of an occupant in the order, before it had its devices.
func keyOf(o *cluster.Occupant) queue.Key {
	return queue.Key{Priority: o.Priority, Epoch: o.Arrived.Epoch, Counter: o.Arrived.Counter, Path: o.Unit}
}

// wouldFitWithout reports whether a unit would have a place once the named units
// have given way or given up, and more of lower priority where the unit asks for
// that. Without that question two units could take from each other for ever devices that
// help neither. A named unit that gives up leaves the devices that it has taken. The rest of
// its place stays with the units that it displaces, except those that leave already.
func (w *World) wouldFitWithout(u *Unit, named []string, standing *Standing) bool {
	state := w.occupied()
	var holders []preempt.Holder
	var below []*cluster.Occupant
	var given []string
	give := func(o *cluster.Occupant) {
		h := holderOf(o)
		h.Priority = math.MinInt32
		holders, given = append(holders, h), append(given, o.Unit)
	}
	for _, path := range named {
		o := state.Occupant(path)
		if o == nil || slices.Contains(given, path) {
			continue
		}
		give(o)
		for _, victim := range o.Displaces {
			switch v := state.Occupant(victim); {
			case v == nil, slices.Contains(given, victim):
			case v.IsLeaving():
				give(v)
			case u.Right == Lower && isBelow(v, u, given) && standing.mayTakePlaceOf(v):
				below = append(below, v)
			}
		}
	}
	if u.Right == Lower {
		for o := range state.WithStatus(cluster.Evictable) {
			if isBelow(o, u, given) && standing.mayTakePlaceOf(o) {
				below = append(below, o)
			}
		}
	}
	_, ok := preempt.Find(w.State, u.Demand, u.Key.Priority, append(holders, w.holdersOf(below)...))
	return ok
}

// noVictims notes why no unit gives way.
func (d *Decision) noVictims(why string) bool {
	d.Evidence.NoVictims = why
	return false
}

// nominate looks for a place with the given victims gone, and with more of
// lower priority where the unit asks for that. While others are leaving whose room
// suffices, no other unit is evicted.
func (w *World) nominate(u *Unit, given []string, d *Decision) bool {
	if leaving := w.Leaving(); len(leaving) > 0 && len(given) == 0 {
		if members, ok := preempt.With(w.State, u.Demand, leaving); ok {
			d.Evidence.leaves(members)
			return d.noVictims(fmt.Sprintf("%d units are leaving, and it has room then", len(leaving)))
		}
	}
	if given = w.withMates(given); slices.ContainsFunc(given, func(path string) bool { return w.State.Occupant(path).Status != cluster.Evictable }) {
		return d.noVictims("a unit gives way with its whole group, of which a member cannot now")
	}
	plan, ok := w.find(u, given, d.standing)
	if !ok {
		return d.noVictims(noSet(d.standing))
	}
	victims := slices.Clone(given)
	for _, path := range w.withMates(plan.Victims) {
		if !slices.Contains(victims, path) {
			victims = append(victims, path)
		}
	}
	if len(victims) == 0 {
		return d.noVictims("nobody is in its way") // the view has changed since it was tried
	}
	if ops := w.OpsOfPreemption(u, victims); ops > w.MaxOps {
		return d.noVictims(fmt.Sprintf("%d units would have to give way in one transaction of %d operations, the store takes %d", len(victims), ops, w.MaxOps))
	}
	d.Action, d.Plan, d.Victims, d.Claims = Preempt, plan.Members, victims, len(given) > 0
	return true
}

// noSet says why no set of victims was found.
func noSet(s *Standing) string {
	text := "no set of units that may give way would make room"
	if s != nil && s.height > 0 {
		text += ": it would borrow quota, and takes no place of work that borrows less"
	}
	return text
}

// find chooses who gives way for a unit.
func (w *World) find(u *Unit, given []string, standing *Standing) (preempt.Plan, bool) {
	if w.Evictable != nil && len(given) == 0 && standing.height == 0 && u.Right == Lower && !w.hasMates(u) {
		return w.Evictable.Find(u.Demand, u.Key.Priority)
	}
	return preempt.Find(w.State, u.Demand, u.Key.Priority, w.Holders(u, given, standing))
}

// AllEvictable is an index for Evictable.
func (w *World) AllEvictable() *preempt.Index {
	var all []*cluster.Occupant
	for o := range w.occupied().WithStatus(cluster.Evictable) {
		if !o.Pinned {
			all = append(all, o)
		}
	}
	return preempt.NewIndex(w.State, w.holdersOf(all))
}

// Holders are the units that may give way for one: those that quota names,
// before all others, and if it has the right those of lower priority of which its standing
// allows it to take the place.
func (w *World) Holders(u *Unit, given []string, standing *Standing) []preempt.Holder {
	named := make([]*cluster.Occupant, len(given))
	for i, path := range given {
		named[i] = w.State.Occupant(path)
	}
	all := w.holdersOf(named)
	for i := range all {
		all[i].Priority = math.MinInt32
	}
	if u.Right != Lower {
		return all
	}
	state := w.occupied()
	if !state.HasEvictableBelow(u.Key.Priority) {
		return all
	}
	var below []*cluster.Occupant
	for o := range state.WithStatus(cluster.Evictable) {
		if isBelow(o, u, given) && standing.mayTakePlaceOf(o) {
			below = append(below, o)
		}
	}
	return append(all, w.holdersOf(below)...)
}

// isBelow reports whether an occupant may ever give way to a unit, besides the units
// that are given. A boost may raise a unit above the others of its job, and these stay.
func isBelow(o *cluster.Occupant, u *Unit, given []string) bool {
	return o.Priority < u.Key.Priority && !o.Pinned && !u.isOf(o) && !slices.Contains(given, o.Unit)
}

// isOf reports whether a unit and an occupant are of one job or group.
func (u *Unit) isOf(o *cluster.Occupant) bool {
	own := u.Demand.Subject
	return own != nil && o.Subject != nil && own.Group == o.Subject.Group && own.Namespace == o.Subject.Namespace
}

// hasMates reports whether occupants are of the job or group of a unit.
func (w *World) hasMates(u *Unit) bool {
	for o := range w.occupied().Occupants() {
		if u.isOf(o) {
			return true
		}
	}
	return false
}

// holderOf is an occupant as a choice of victims sees it.
func holderOf(o *cluster.Occupant) preempt.Holder {
	return preempt.Holder{Unit: o.Unit, Priority: o.Priority, Started: o.Started, Parts: o.Parts}
}

// Leaving are the units that hold devices, are on their way out, and make
// room for no unit in particular. The devices of an agent out of reach are freed by
// no unit.
func (w *World) Leaving() []preempt.Holder {
	var all []preempt.Holder
	for o := range w.occupied().WithStatus(cluster.Leaving) {
		if w.IsReached(o) {
			all = append(all, holderOf(o))
		}
	}
	slices.SortFunc(all, func(a, b preempt.Holder) int { return cmp.Compare(a.Unit, b.Unit) })
	return all
}

// IsReached reports whether the agents of all nodes of an occupant are in reach.
func (w *World) IsReached(o *cluster.Occupant) bool {
	return !slices.ContainsFunc(o.Nodes, func(id resource.NodeID) bool {
		n := w.State.Node(id)
		return n == nil || !n.Ready
	})
}

// OpsOfPreemption is the size of the transaction that commits a preemptor and
// releases its victims, in compares or operations.
func (w *World) OpsOfPreemption(u *Unit, victims []string) int {
	own := min(u.Demand.Members, len(w.State.Nodes())) + 3
	ops, compares := w.opsOfVictims(victims)
	return own + max(ops, compares)
}

// opsOfVictims are the operations and compares that release victims.
func (w *World) opsOfVictims(victims []string) (ops, compares int) {
	for _, path := range victims {
		ops += len(w.State.Occupant(path).Nodes) + 3
		compares += 2
	}
	return ops, compares
}
