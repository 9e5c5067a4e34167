// Package queue keeps the total order of waiting units: priority descending,
// then arrival, then path. It decides who is tried next and remembers who was
// tried in vain; it does not place, charge or store anything, and has no clock.
package queue

import (
	"cmp"

	"github.com/musterd/muster/coordinator/queue/ranked"
	"github.com/musterd/muster/resource"
)

// Key is a unit's place in the order. The store's order keys sort the same.
type Key struct {
	Priority int32          // greater is first
	Epoch    resource.Epoch // with Counter: arrival; smaller is first
	Counter  uint64
	Path     string // unique; breaks ties
}

// Compare is negative when k comes before o.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(o.Priority, k.Priority), cmp.Compare(k.Epoch, o.Epoch), cmp.Compare(k.Counter, o.Counter), cmp.Compare(k.Path, o.Path))
}

// Compare orders keys: negative when a comes before b.
func Compare(a, b Key) int { return a.Compare(b) }

// Queue is the order in memory. The zero value is an empty queue. One
// goroutine owns it; Len, HasActive, Position and Head write nothing.
//
// Invariant: parked counts the units that were parked since the last Wake.
type Queue struct {
	units    ranked.Tree[Key, stamp, ranked.Stamps]
	parked   int
	wakes    uint64   // how often Wake was called
	observer Observer // nil for none
}

// stamp tells since when a unit is parked: it is the queue's present stamp, or
// an earlier one while the unit is active. Each Wake makes a new one, so that
// no unit needs to change.
type stamp uint64

// active is the stamp of a unit that was not parked since it was pushed.
const active stamp = 1

// Sum counts stamps.
func (s stamp) Sum(left, right ranked.Stamps) ranked.Stamps {
	return left.Plus(ranked.Stamped(uint64(s))).Plus(right)
}

// present is the stamp of units that are parked now.
func (q *Queue) present() stamp { return active + 1 + stamp(q.wakes) }

// Observer is told who comes into the order and who leaves it.
type Observer interface {
	Arrived(Key)
	Left(Key)
}

// Observe lets o be told of every later change.
func (q *Queue) Observe(o Observer) { q.observer = o }

// Len counts all waiting units.
func (q *Queue) Len() int { return q.units.Len() }

// Push adds a unit as active. Pushing a path again with the same key only makes
// it active.
func (q *Queue) Push(k Key) {
	u, added := q.units.Insert(k, active)
	if !added {
		q.activate(u)
		return
	}
	if q.observer != nil {
		q.observer.Arrived(k)
	}
}

// unit is one entry of the order.
type unit = ranked.Entry[Key, stamp, ranked.Stamps]

// activate makes a unit active that may be parked.
func (q *Queue) activate(u *unit) {
	if u.Value() == q.present() {
		u.Set(active)
		q.parked--
	}
}

// Remove takes a unit out; an absent one changes nothing.
func (q *Queue) Remove(k Key) {
	u := q.units.Find(k)
	if u == nil {
		return
	}
	q.activate(u)
	q.units.Delete(u)
	if q.observer != nil {
		q.observer.Left(k)
	}
}

// Park marks a unit as tried in vain: Active does not return it before Wake.
func (q *Queue) Park(k Key) {
	if u := q.units.Find(k); u != nil && u.Value() != q.present() {
		u.Set(q.present())
		q.parked++
	}
}

// Wake makes every parked unit active again, in O(1).
func (q *Queue) Wake() {
	q.wakes++
	q.parked = 0
}

// Active returns the units to try, in order. Among many that are parked, k
// active ones take O(k log n).
func (q *Queue) Active() []Key {
	if !q.HasActive() {
		return nil
	}
	keys := make([]Key, 0, q.Len()-q.parked)
	present := uint64(q.present())
	for u := range q.units.Select(func(s ranked.Stamps) bool { return s.Stale(present) > 0 }) {
		keys = append(keys, u.Key())
	}
	return keys
}

// HasActive reports whether any unit waits to be tried.
func (q *Queue) HasActive() bool { return q.parked < q.Len() }

// Position returns a unit's place, 1 for the next; 0 when it is not queued.
func (q *Queue) Position(k Key) int {
	u := q.units.Find(k)
	if u == nil {
		return 0
	}
	return u.Position() + 1
}

// Head returns the first n units in order, fewer if there are fewer.
func (q *Queue) Head(n int) []Key {
	keys := make([]Key, 0, min(n, q.Len()))
	for u := range q.units.All() {
		if len(keys) == cap(keys) {
			break
		}
		keys = append(keys, u.Key())
	}
	return keys
}
