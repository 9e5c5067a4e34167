// Package queue keeps the total order of waiting units: priority descending,
// then arrival, then path. It tries, places, charges and stores no unit, and has
// no clock; coordinator/sched decides which unit is tried.
package queue

import (
	"cmp"
	"iter"

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

// Keys is a set of keys in order. The zero value is empty.
type Keys = ranked.Tree[Key, Unit, struct{}]

// Unit is the value of an entry of Keys, which has none beside its key.
type Unit struct{}

// Sum is of no amounts.
func (Unit) Sum(struct{}, struct{}) struct{} { return struct{}{} }

// Queue is the order in memory. The zero value is an empty queue. One
// goroutine owns it; Len, Position and Head write nothing.
type Queue struct {
	units    Keys
	observer Observer // nil for none
}

// Observer learns which units come into the order and which leave it.
type Observer interface {
	Arrived(Key)
	Left(Key)
}

// Observe lets o learn of every later change.
func (q *Queue) Observe(o Observer) { q.observer = o }

// Len counts all waiting units.
func (q *Queue) Len() int { return q.units.Len() }

// Push adds a unit. Pushing the same key again changes nothing.
func (q *Queue) Push(k Key) {
	if _, added := q.units.Insert(k, Unit{}); added && q.observer != nil {
		q.observer.Arrived(k)
	}
}

// Remove takes a unit out; an absent one changes nothing.
func (q *Queue) Remove(k Key) {
	u := q.units.Find(k)
	if u == nil {
		return
	}
	q.units.Delete(u)
	if q.observer != nil {
		q.observer.Left(k)
	}
}

// Position returns a unit's place, 1 for the next; 0 when it is not queued. Units that
// arrived as one, the members of a group, have one place: that of the first.
func (q *Queue) Position(k Key) int {
	u := q.units.Find(k)
	if u == nil {
		return 0
	}
	at := u.Position()
	for at > 0 && q.units.At(at-1).Key().ArrivedWith(k) {
		at--
	}
	return at + 1
}

// ArrivedWith reports whether two units have one place in the order, but for their
// paths.
func (k Key) ArrivedWith(o Key) bool {
	return k.Priority == o.Priority && k.Epoch == o.Epoch && k.Counter == o.Counter
}

// All yields the units in order. The queue must not change meanwhile.
func (q *Queue) All() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for u := range q.units.All() {
			if !yield(u.Key()) {
				return
			}
		}
	}
}

// Range returns up to n units in order, from a position on; the first has position
// 0.
func (q *Queue) Range(from, n int) []Key {
	if from < 0 || from >= q.units.Len() {
		return nil
	}
	var keys []Key
	for e := q.units.At(from); e != nil && len(keys) < n; e = e.Next() {
		keys = append(keys, e.Key())
	}
	return keys
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
