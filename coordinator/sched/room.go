package sched

import (
	"container/heap"
	"iter"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
)

// Room holds the waiting units in their order, by class. One goroutine owns it.
//
// Invariant: each unit of the order is held, or belongs to exactly one class.
type Room struct {
	order   queue.Queue
	class   map[string]*Class // by path: of units that may be tried
	classes map[Traits]*Class
	woken   woken
	turn    []*Class // that Backstop has yet to wake
	atOnce  int      // of them at each call
	// callsLeft are the calls until the next turn may begin.
	callsLeft int
	// awaiting counts the classes that no event has woken and that wait for others
	// to give way or leave, and asleep those that sleep, by code.
	awaiting int
	// neighbours counts the classes that no event has woken and that units may help
	// which come to nodes or leave them.
	neighbours int
	asleep     [codes]int
	observer   Observer // nil for none
	joined     []*Class // that sleep and may have fresh units
	tried      *Class   // by the pass, now
	again      []*Class // that their own trials have woken
	trials     uint64   // so far
}

// NewRoom returns a room without units.
func NewRoom() *Room { return &Room{class: map[string]*Class{}, classes: map[Traits]*Class{}} }

// Order is the total order of the units, held ones included. It must not be
// changed.
func (r *Room) Order() *queue.Queue { return &r.order }

// Hold puts a unit into the order that cannot be tried now: it rests, or is being
// written. The event that it waits for offers it.
func (r *Room) Hold(k queue.Key) {
	r.leave(k)
	r.order.Push(k)
	if r.observer != nil {
		r.observer.Held(k)
	}
}

// Offer puts a unit into the order that may be tried (E6). In a class that
// sleeps it shares the evidence at the next pass; a new class is awake. others are the
// demands of the unit's alternatives, in order.
func (r *Room) Offer(k queue.Key, t Traits, demand *place.Unit, others ...*place.Unit) {
	c := r.class[k.Path]
	if c != nil && c.Traits == t {
		return
	}
	r.leave(k)
	r.order.Push(k)
	if c = r.classes[t]; c == nil {
		c = &Class{Traits: t, demand: demand, others: others}
		r.classes[t] = c
	}
	c.join(demand)
	r.class[k.Path] = c
	leads := c.units.Len() == 0 || queue.Compare(k, c.head) < 0
	if c.units.Insert(k, queue.Unit{}); leads {
		c.head = k
	}
	c.fresh = append(c.fresh, k.Path)
	switch {
	case c.evidence != nil:
		r.joined = append(r.joined, c)
	case c.awake == 0:
		r.wake(c, false)
	case c.awake > 0 && leads:
		heap.Fix(&r.woken, c.awake-1)
	}
	if r.observer != nil {
		r.observer.Joined(k, c)
	}
}

// Remove takes a unit out of the order; an absent one changes nothing.
func (r *Room) Remove(k queue.Key) {
	r.leave(k)
	r.order.Remove(k)
}

// leave takes a unit out of its class. A class without units is forgotten.
func (r *Room) leave(k queue.Key) {
	c := r.class[k.Path]
	if c == nil {
		return
	}
	delete(r.class, k.Path)
	e := c.units.Find(k)
	c.units.Delete(e)
	led := k == c.head
	if next := c.units.At(0); led && next != nil {
		c.head = next.Key()
	}
	switch {
	case c.units.Len() == 0:
		delete(r.classes, c.Traits)
		r.setEvidence(c, nil, false)
		if c.awake > 0 {
			heap.Remove(&r.woken, c.awake-1)
		}
	case led && c.awake > 0:
		heap.Fix(&r.woken, c.awake-1)
	}
}

// Offered reports whether a unit may be tried.
func (r *Room) Offered(path string) bool { return r.class[path] != nil }

// EvidenceOf is why a unit that may be tried was not placed at the last trial of
// its class; nil where there was none, or the unit cannot be tried.
func (r *Room) EvidenceOf(path string) *Evidence {
	if c := r.class[path]; c != nil {
		return c.last
	}
	return nil
}

// Asleep is the evidence on which a unit's class sleeps; nil where the class is
// awake, or the unit cannot be tried.
func (r *Room) Asleep(path string) *Evidence {
	if c := r.class[path]; c != nil {
		return c.evidence
	}
	return nil
}

// ClassOf is the class of a unit that may be tried, nil of any other.
func (r *Room) ClassOf(path string) *Class { return r.class[path] }

// Trials counts the units that passes have tried.
func (r *Room) Trials() uint64 { return r.trials }

// Busy reports whether a pass has work.
func (r *Room) Busy() bool { return len(r.woken) > 0 }

// Classes lists the classes in the order of their first units.
func (r *Room) Classes() []*Class {
	all := make([]*Class, 0, len(r.classes))
	for _, c := range r.classes {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Class) int { return queue.Compare(a.head, b.head) })
	return all
}

// Each yields the classes, in no order.
func (r *Room) Each() iter.Seq[*Class] { return maps.Values(r.classes) }

// Len counts the classes.
func (r *Room) Len() int { return len(r.classes) }

// First is the first unit of the class.
func (c *Class) First() queue.Key { return c.head }
