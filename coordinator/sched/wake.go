package sched

import (
	"container/heap"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// Held sums the resources that units of a lower priority hold on a node, whether they may
// give way now or not.
type Held func(n *cluster.Node, below int64) cluster.Amounts

// Grew wakes those that a node may help which has more to give, or takes work
// again (E1).
func (r *Room) Grew(n *cluster.Node, held Held) {
	r.happen(Event{Kind: KindGrew}, []*cluster.Node{n}, held, func(c *Class) bool { return c.hopesFor(n, held) })
}

// Evictable wakes those for whom a unit of a priority may give way now that
// could not before; nodes are those where it holds devices (E3).
func (r *Room) Evictable(priority int32, nodes []*cluster.Node, held Held) {
	r.happen(Event{Kind: KindEvictable, Priority: priority}, nodes, held, func(c *Class) bool {
		switch {
		case c.last.any(func(e *Evidence) bool { return e.Code == Claim }):
			return true
		case !c.last.any(func(e *Evidence) bool { return e.Code == NoVictims || e.Code == Leaving }):
			return false
		}
		// Under rules about other units a victim may be on any node of a domain.
		return c.Priority > priority && (c.Relation != "" || slices.ContainsFunc(nodes, func(n *cluster.Node) bool { return c.hopesFor(n, held) }))
	})
}

// AwaitsOthers reports whether a class that no event has woken waits for units to
// give way or to leave.
func (r *Room) AwaitsOthers() bool { return r.awaiting > 0 }

// Unleft wakes those that counted on the room of units that were leaving: one of
// these has left, cannot, or leaves for another unit now (E4).
func (r *Room) Unleft() {
	r.happen(Event{Kind: KindUnleft}, nil, nil, func(c *Class) bool {
		return c.last.any(func(e *Evidence) bool { return e.Code == Leaving || e.Code == Claim })
	})
}

// CountsOn reports whether a class that no event has woken counts on room of a node, as
// it is and once units have left.
func (r *Room) CountsOn(id resource.NodeID) bool {
	for _, c := range r.classes {
		if c.asleep() && c.last.any(func(e *Evidence) bool { return e.Code == Leaving && slices.Contains(e.On, id) }) {
			return true
		}
	}
	return false
}

// AwaitsNeighbours reports whether a class that no event has woken waits for a place
// under rules about other units.
func (r *Room) AwaitsNeighbours() bool { return r.neighbours > 0 }

// Neighbour wakes those whose rules select a unit, or whom the unit's rules select,
// and that wait for a place: the unit has come to nodes, is leaving them or has left
// (E7).
func (r *Room) Neighbour(u *constraint.Subject) {
	r.happen(Event{Kind: KindNeighbour, Namespace: u.Namespace, Subject: u}, nil, nil, func(c *Class) bool {
		return c.awaitsNeighbours() && c.Namespace == u.Namespace && c.isNeighbourOf(u)
	})
}

// isNeighbourOf reports whether rules of the class or of a unit are about each other, or
// the class joins the gang of the unit.
func (c *Class) isNeighbourOf(u *constraint.Subject) bool {
	return c.anyDemand(func(d *place.Unit) bool {
		joins := d.Topology != nil && d.Subject.Group == u.Group
		return joins || d.Subject.Relations.Concerns(d.Subject, u) || u.Relations.KeepsApart(u, d.Subject)
	})
}

// Regrouped wakes those that wait for a place under rules about other units: nodes
// have come, gone or other labels, and domains with them (E7).
func (r *Room) Regrouped() {
	r.happen(Event{Kind: KindRegrouped}, nil, nil, func(c *Class) bool { return c.awaitsNeighbours() })
}

// Freed wakes those over the quota of a namespace, or of any of these trees, of
// which a charge has ended; and those that found no victims because they would borrow
// there (E2).
func (r *Room) Freed(namespace string, trees []string) {
	r.happen(Event{Kind: KindFreed, Namespace: namespace, Trees: trees}, nil, nil, func(c *Class) bool {
		return c.overQuotaOf(namespace, trees) || c.last.any(func(e *Evidence) bool { return e.Borrows && e.chargedTo(trees) })
	})
}

// Charged wakes those that claim quota of any of these trees, to which a unit is
// charged from now on: the trees may name others that have to give way (E2).
func (r *Room) Charged(trees []string) {
	r.happen(Event{Kind: KindCharged, Trees: trees}, nil, nil, func(c *Class) bool {
		return c.last.any(func(e *Evidence) bool { return e.Code == Claim && e.overQuotaOf("", c.Namespace, trees) })
	})
}

// Moved wakes those over the quota of any of these trees, to which a unit is
// charged from now on, and has moved other units there: a tree that named no unit
// may name those others. It wakes those that would borrow from any tree and found no
// victims, too: the others borrow now, and may give way for a place (E2).
func (r *Room) Moved(trees []string) {
	r.happen(Event{Kind: KindMoved, Trees: trees}, nil, nil, func(c *Class) bool {
		return c.overQuotaOf("", trees) || c.last.any(func(e *Evidence) bool { return e.Borrows })
	})
}

// Due wakes those over the quota of a tree: a time has come from which on more
// units may give way there (E5).
func (r *Room) Due() {
	r.happen(Event{Kind: KindDue}, nil, nil, func(c *Class) bool {
		return c.last.any(func(e *Evidence) bool { return e.Code == OverTree || e.Code == Claim })
	})
}

// Emptied wakes those that wait for members of a queue to end: fewer hold something
// than before, or more may (E8).
func (r *Room) Emptied(queue string) {
	r.happen(Event{Kind: KindQueue, Queue: queue}, nil, nil, func(c *Class) bool { return c.last.Code == OverQueue && c.Queue == queue })
}

// All wakes every class: a limit, a tree, a binding, an isolation or the account
// of a term has changed.
func (r *Room) All() {
	r.happen(Event{Kind: KindAll}, nil, nil, func(*Class) bool { return true })
}

// wakeThose wakes the sleeping classes that an event helps, by why they failed last.
// Of a class that is awake for the backstop it notes that the event would have.
func (r *Room) wakeThose(helps func(*Class) bool) {
	for _, c := range r.classes {
		if c.asleep() && helps(c) {
			r.wake(c, false)
		}
	}
	if c := r.tried; c != nil && c.evidence == nil && !slices.Contains(r.again, c) {
		r.again = append(r.again, c) // it is not known yet why it fails, if it does
	}
}

// Backstop wakes sleeping classes in turn, a part of them at each call, so that in
// so many calls each was woken once. A unit that is placed only then was overlooked
// by the events.
func (r *Room) Backstop(calls int) {
	if r.callsLeft == 0 && len(r.turn) == 0 {
		r.turn, r.callsLeft = r.Classes(), calls
		r.atOnce = min((len(r.turn)+calls-1)/calls, mostAtOnce)
	}
	r.callsLeft = max(0, r.callsLeft-1)
	for n := min(r.atOnce, len(r.turn)); n > 0; n-- {
		c := r.turn[0]
		r.turn = r.turn[1:]
		if r.classes[c.Traits] == c && c.evidence != nil {
			r.wake(c, true)
		}
	}
}

// mostAtOnce bounds the classes that one call of Backstop wakes. Where there are
// more, a turn takes more calls.
const mostAtOnce = 1000

// wake puts a class among those that are to be tried, and forgets its evidence. A
// class that is being tried is woken when the pass ends.
func (r *Room) wake(c *Class, backstop bool) {
	switch {
	case r.tried == c:
		r.again = append(r.again, c)
	case c.awake > 0:
		r.setEvidence(c, nil, c.backstop && backstop)
	default:
		r.setEvidence(c, nil, backstop)
		heap.Push(&r.woken, c)
	}
}

// hopesFor reports whether the class waits for a place or victims, and a member
// of it may fit on a node as that is now, or once others have given way there.
func (c *Class) hopesFor(n *cluster.Node, held Held) bool {
	if !n.Ready || n.Unschedulable || n.Host == nil || n.Free == nil {
		return false
	}
	return c.anyWay(func(d *place.Unit, e *Evidence) bool { return c.hopesForMember(n, held, d, e) })
}

// hopesForMember is hopesFor of one demand, and of the evidence of the request.
func (c *Class) hopesForMember(n *cluster.Node, held Held, d *place.Unit, e *Evidence) bool {
	return d.AnySet(func(r *resource.Request, of *constraint.Set) bool {
		if !of.Allows(n.Labels) {
			return false
		}
		switch e.Code {
		case NoPlace:
			return n.MayFit(r)
		case NoVictims, Leaving:
			return n.MayFit(r) || couldClear(n, r, held(n, int64(c.Priority)))
		case Claim:
			return n.MayFit(r) || couldClear(n, r, held(n, AnyPriority))
		case OverLimit, OverTree, OverQueue:
		}
		return false
	})
}

// couldClear reports whether a member may fit on a node beside nothing of these
// amounts, which others hold.
func couldClear(n *cluster.Node, r *resource.Request, held cluster.Amounts) bool {
	return n.FreeAmounts().Plus(held).Covers(cluster.Least(r))
}

// overQuotaOf reports whether the class waits for quota of a namespace or a tree.
func (c *Class) overQuotaOf(namespace string, trees []string) bool {
	return c.last.any(func(e *Evidence) bool { return e.overQuotaOf(namespace, c.Namespace, trees) })
}

// overQuotaOf is that of one request of a class of the namespace own.
func (e *Evidence) overQuotaOf(namespace, own string, trees []string) bool {
	switch {
	case e.Code == OverLimit, e.ByModel && own == namespace:
		return own == namespace
	case e.Code == OverTree, e.Code == Claim, e.ByModel:
		return e.chargedTo(trees)
	}
	return false
}

// chargedTo reports whether the class is charged to one of some trees.
func (e *Evidence) chargedTo(trees []string) bool {
	return slices.ContainsFunc(e.Trees, func(t string) bool { return slices.Contains(trees, t) })
}
