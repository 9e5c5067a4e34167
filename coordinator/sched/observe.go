package sched

import (
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
)

// Observer follows a room, so that its decisions can be verified. It does not
// change the room.
type Observer interface {
	queue.Observer // units come into the order and leave it
	// Held: a unit of the order cannot be tried now.
	Held(k queue.Key)
	// Joined: a unit of the order may be tried with a class.
	Joined(k queue.Key, c *Class)
	// Slept: a class has failed.
	Slept(c *Class, e *Evidence)
	// Happened: an event, while a class sleeps that the event may concern. The
	// classes are woken already. The observer does not keep the event.
	Happened(e *Event)
}

// Kind is the kind of an event.
type Kind uint8

// The kinds; see the table of the package.
const (
	KindGrew Kind = iota
	KindFreed
	KindCharged
	KindMoved
	KindEvictable
	KindUnleft
	KindDue
	KindNeighbour
	KindRegrouped
	KindQueue
	KindAll
)

// Event is all that the rules of wake-up look at, beside the classes.
type Event struct {
	Kind      Kind
	Nodes     []Facts  // of Grew, and of Evictable where the unit holds devices
	Priority  int32    // of the unit, of Evictable
	Namespace string   // of Freed and Neighbour
	Trees     []string // of Freed, Charged and Moved
	Queue     string   // of Queue
	// Subject is the unit of Neighbour.
	Subject *constraint.Subject
}

// Facts is a node as it was when an event happened.
type Facts struct {
	Node *cluster.Node
	Held []HeldBelow // for each bound that a sleeping class asks about, ascending
}

// HeldBelow is the sum of the reservations below a priority.
type HeldBelow struct {
	Below int64 // AnyPriority for all
	cluster.Amounts
}

// AnyPriority is above each priority: quota names its victims of any priority.
const AnyPriority = 1 << 40

// Observe lets o follow the room from now on.
func (r *Room) Observe(o Observer) {
	r.observer = o
	r.order.Observe(o)
}

// concerns are, by the kind of an event, the codes of classes that it may wake.
var concerns = [...][]Code{
	KindGrew:      {NoPlace, NoVictims, Leaving, Claim},
	KindFreed:     {OverLimit, OverTree, Claim, NoVictims},
	KindCharged:   {Claim},
	KindMoved:     {OverTree, Claim, NoVictims},
	KindEvictable: {NoVictims, Leaving, Claim},
	KindUnleft:    {Leaving, Claim},
	KindDue:       {OverTree, Claim},
	KindNeighbour: {NoPlace, NoVictims, Leaving, Claim},
	KindRegrouped: {NoPlace, NoVictims, Leaving, Claim},
	KindQueue:     {OverQueue},
	KindAll:       {NoPlace, NoVictims, Leaving, OverLimit, OverTree, Claim, OverQueue},
}

// happen wakes the sleeping classes that an event helps. The observer learns of the
// event with the nodes as they are before any other event.
func (r *Room) happen(e Event, nodes []*cluster.Node, held Held, helps func(*Class) bool) {
	concerned := r.observer != nil && slices.ContainsFunc(concerns[e.Kind], func(c Code) bool { return r.asleep[c] > 0 })
	if concerned && len(nodes) > 0 {
		bounds := r.bounds()
		for _, n := range nodes {
			e.Nodes = append(e.Nodes, factsOf(n, bounds, held))
		}
	}
	r.wakeThose(helps)
	if concerned {
		r.observer.Happened(&e)
	}
}

// bounds lists the priorities below which sleeping classes may have units evicted.
func (r *Room) bounds() []int64 {
	var list []int64
	for _, c := range r.classes {
		if c.evidence != nil && c.awaitsOthers() {
			list = c.appendBounds(list)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// appendBounds adds the priorities below which others may give way for a class that waits
// for that.
func (c *Class) appendBounds(list []int64) []int64 {
	if c.evidence.any(func(e *Evidence) bool { return e.Code == Claim }) {
		list = append(list, AnyPriority)
	}
	if c.evidence.any(func(e *Evidence) bool { return e.Code == NoVictims || e.Code == Leaving }) {
		list = append(list, int64(c.Priority))
	}
	return list
}

func factsOf(n *cluster.Node, bounds []int64, held Held) Facts {
	f := Facts{Node: n}
	for _, b := range bounds {
		f.Held = append(f.Held, HeldBelow{b, held(n, b)})
	}
	return f
}

// Demand is the demand of each unit of the class, which may not be changed.
func (c *Class) Demand() *place.Unit { return c.demand }
