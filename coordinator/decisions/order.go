package decisions

import (
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/queue/ranked"
)

// order is who waits, in the queue's order, and why each does.
type order struct {
	units ranked.Tree[queue.Key, mark, tally]
	next  *unit // after the unit found last, nil after none: a pass goes through the order
}

// unit is one entry of the order.
type unit = ranked.Entry[queue.Key, mark, tally]

// mark is why a unit waits.
//
// Invariant: why is the number of the evidence, 0 where that is nil.
type mark struct {
	evidence *Evidence // shared by those of whom the same was said at once
	tried    uint64    // generation, where the evidence is of one
	why      uint8
}

// tally counts units by evidence, and those with a generation by that.
type tally struct {
	why   [len(whys)]int32
	tried ranked.Stamps
}

// Sum adds a unit to those on both sides.
func (m mark) Sum(left, right tally) tally {
	for i, n := range right.why {
		left.why[i] += n
	}
	left.why[m.why]++
	left.tried = left.tried.Plus(ranked.Stamped(m.tried)).Plus(right.tried)
	return left
}

func before(a, b queue.Key) bool { return queue.Compare(a, b) < 0 }

// newOrder returns the order of keys that ascend. Nobody was tried yet.
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
func (o *order) explain(u *unit, e *Evidence, generation uint64) {
	m := mark{evidence: e, why: e.Why.number()}
	if e.Why.ofGeneration() {
		m.tried = generation
	}
	u.Set(m)
}

// tryAgain notes that a unit's evidence holds at a generation as well.
func (o *order) tryAgain(u *unit, generation uint64) {
	m := u.Value()
	m.tried = generation
	u.Set(m)
}

// namedStale bounds how many units one record names that were not tried again.
const namedStale = 5

// counts counts those before a unit.
func (o *order) counts(u *unit) Counts { return o.units.SumBefore(u).counts() }

func (t tally) counts() Counts {
	var n [len(whys)]int
	for i := range n {
		n[i] = int(t.why[i])
	}
	return countsOf(n)
}

// ahead counts those before a unit; fresh are those whose evidence is of this
// generation. No evidence may be of a later one.
func (o *order) ahead(u *unit, generation uint64) (counts Counts, fresh int, stale []string) {
	sum := o.units.SumBefore(u)
	stale = o.paths(min(namedStale, sum.tried.Stale(generation)), func(t tally) bool { return t.tried.Stale(generation) > 0 })
	return sum.counts(), sum.tried.Fresh(generation), stale
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

// state lists all who wait, with each evidence once.
func (o *order) state() ([]Waiting, []Evidence) {
	var evidence []Evidence
	numbers := map[*Evidence]int{}
	waiting := make([]Waiting, 0, o.units.Len())
	for u := range o.units.All() {
		k, m := u.Key(), u.Value()
		w := Waiting{Unit: k.Path, Order: orderOf(k), Tried: m.tried}
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
