// Package queue keeps the total order of waiting units: priority descending,
// then arrival, then path. It decides who is tried next and remembers who was
// tried in vain; it does not place, charge or store anything, and has no clock.
package queue

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/resource"
)

// Key is a unit's place in the order. The store's order keys sort the same.
type Key struct {
	Priority int32          // greater is first
	Epoch    resource.Epoch // with Counter: arrival; smaller is first
	Counter  uint64
	Path     string // unique; breaks ties
}

// Compare orders keys: negative when a comes before b.
func Compare(a, b Key) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Counter, b.Counter), cmp.Compare(a.Path, b.Path))
}

// Queue is the order in memory. The zero value is an empty queue. One
// goroutine owns it.
//
// Invariant: keys ascends by Compare without duplicates; active and parked
// partition its paths.
type Queue struct {
	keys     []Key
	active   map[string]bool // by path: waits to be tried
	observer Observer        // nil for none
}

// Observer is told who comes into the order and who leaves it.
type Observer interface {
	Arrived(Key)
	Left(Key)
}

// Observe lets o be told of every later change.
func (q *Queue) Observe(o Observer) { q.observer = o }

// Len counts all waiting units.
func (q *Queue) Len() int { return len(q.keys) }

// Push adds a unit as active. Pushing a path again with the same key only makes
// it active.
func (q *Queue) Push(k Key) {
	if q.active == nil {
		q.active = map[string]bool{}
	}
	i, found := slices.BinarySearchFunc(q.keys, k, Compare)
	if !found {
		q.keys = slices.Insert(q.keys, i, k)
		if q.observer != nil {
			q.observer.Arrived(k)
		}
	}
	q.active[k.Path] = true
}

// Remove takes a unit out; an absent one changes nothing.
func (q *Queue) Remove(k Key) {
	if i, found := slices.BinarySearchFunc(q.keys, k, Compare); found {
		q.keys = slices.Delete(q.keys, i, i+1)
		delete(q.active, k.Path)
		if q.observer != nil {
			q.observer.Left(k)
		}
	}
}

// Park marks a unit as tried in vain: Active does not return it before Wake.
func (q *Queue) Park(k Key) {
	if _, found := slices.BinarySearchFunc(q.keys, k, Compare); found {
		delete(q.active, k.Path)
	}
}

// Wake makes every parked unit active again.
func (q *Queue) Wake() {
	for _, k := range q.keys {
		q.active[k.Path] = true
	}
}

// Active returns the units to try, in order.
func (q *Queue) Active() []Key {
	if len(q.active) == 0 {
		return nil
	}
	keys := make([]Key, 0, len(q.active))
	for _, k := range q.keys {
		if q.active[k.Path] {
			keys = append(keys, k)
		}
	}
	return keys
}

// HasActive reports whether any unit waits to be tried.
func (q *Queue) HasActive() bool { return len(q.active) > 0 }

// Position returns a unit's place, 1 for the next; 0 when it is not queued.
func (q *Queue) Position(k Key) int {
	i, found := slices.BinarySearchFunc(q.keys, k, Compare)
	if !found {
		return 0
	}
	return i + 1
}

// Head returns the first n units in order, fewer if there are fewer.
func (q *Queue) Head(n int) []Key { return slices.Clone(q.keys[:min(n, len(q.keys))]) }
