package decisions

import (
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/queue/ranked"
)

// order is the units that wait, in the queue's order, and why each does.
type order struct {
	units ranked.Tree[queue.Key, mark, tally]
	next  *unit // after the unit found last, nil after none: neighbours are often asked about in turn
}

// unit is one entry of the order.
type unit = ranked.Entry[queue.Key, mark, tally]

// mark is why a unit waits.
//
// Invariant: why is the number of the evidence; where that is nil, it is the number
// of inClass exactly where class is set, and 0 otherwise.
type mark struct {
	evidence *Evidence // of a unit that is held
	class    int       // of a unit that may be tried
	why      uint8
}

// tally counts units by evidence.
type tally [len(whys)]int32

// Sum adds a unit to those on both sides.
func (m mark) Sum(left, right tally) tally {
	for i, n := range right {
		left[i] += n
	}
	left[m.why]++
	return left
}

func before(a, b queue.Key) bool { return queue.Compare(a, b) < 0 }

// newOrder returns the order of keys that ascend, of which nothing is known yet.
func newOrder(keys []queue.Key) order {
	return order{units: ranked.FromSorted[queue.Key, mark, tally](keys)}
}

// find returns the unit of a key, nil where there is none.
func (o *order) find(k queue.Key) *unit {
	u := o.next
	if u == nil || u.Key() != k {
		u = o.units.Find(k)
	}
	if u != nil {
		o.next = u.Next()
	}
	return u
}

func (o *order) insert(k queue.Key) { o.units.Insert(k, mark{}) }

func (o *order) remove(u *unit) {
	o.next = u.Next() // never a unit that is gone
	o.units.Delete(u)
}

// explain sets the evidence of one unit.
func (o *order) explain(u *unit, e *Evidence) { u.Set(mark{evidence: e, why: e.Why.number()}) }

// assign notes that a unit may be tried with a class.
func (o *order) assign(u *unit, class int) { u.Set(mark{class: class, why: inClass.number()}) }

// namedUnits bounds how many units a message names.
const namedUnits = 5

// counts counts those before a unit.
func (o *order) counts(u *unit) Counts { return o.units.SumBefore(u).counts() }

func (t tally) counts() Counts {
	var n [len(whys)]int
	for i := range n {
		n[i] = int(t[i])
	}
	return countsOf(n)
}

// paths names the first n units whose tally has something. They must be there.
func (o *order) paths(n int, has func(tally) bool) (paths []string) {
	if n == 0 {
		return nil
	}
	for u := range o.units.Select(has) {
		if paths = append(paths, u.Key().Path); len(paths) == n {
			break
		}
	}
	return paths
}

// state lists all that wait, with each evidence once.
func (o *order) state() ([]Waiting, []Evidence) {
	var evidence []Evidence
	numbers := map[*Evidence]int{}
	waiting := make([]Waiting, 0, o.units.Len())
	for u := range o.units.All() {
		k, m := u.Key(), u.Value()
		w := Waiting{Unit: k.Path, Order: orderOf(k), Class: m.class}
		if e := m.evidence; e != nil {
			if numbers[e] == 0 {
				evidence = append(evidence, *e)
				numbers[e] = len(evidence)
			}
			w.Why = numbers[e]
		}
		waiting = append(waiting, w)
	}
	return waiting, evidence
}
