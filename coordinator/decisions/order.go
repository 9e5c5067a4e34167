package decisions

import (
	"slices"

	"github.com/musterd/muster/coordinator/queue"
)

// order is who waits, in the queue's order, and why each does.
//
// Invariant: keys ascends by queue.Compare; marks and why have its length;
// marks[i].why is the number of why[i], 0 where that is nil.
type order struct {
	keys  []queue.Key
	marks []mark
	why   []*Evidence // shared by those of whom the same was said at once
	hint  int         // the position after the one found last: a pass goes through the order
}

// mark is what a walk over all who wait looks at.
type mark struct {
	tried uint64 // generation, where the evidence is of one
	why   uint8
}

func before(a, b queue.Key) bool { return queue.Compare(a, b) < 0 }

func (o *order) find(k queue.Key) (int, bool) {
	if o.hint < len(o.keys) && o.keys[o.hint] == k {
		o.hint++
		return o.hint - 1, true
	}
	i, found := slices.BinarySearchFunc(o.keys, k, queue.Compare)
	if found {
		o.hint = i + 1
	}
	return i, found
}

func (o *order) insert(i int, k queue.Key) {
	o.keys = slices.Insert(o.keys, i, k)
	o.marks = slices.Insert(o.marks, i, mark{})
	o.why = slices.Insert(o.why, i, nil)
}

func (o *order) remove(i int) {
	o.keys = slices.Delete(o.keys, i, i+1)
	o.marks = slices.Delete(o.marks, i, i+1)
	o.why = slices.Delete(o.why, i, i+1)
}

// explain sets the evidence of one unit.
func (o *order) explain(i int, e *Evidence, generation uint64) {
	o.why[i], o.marks[i] = e, mark{why: e.Why.number()}
	if e.Why.ofGeneration() {
		o.marks[i].tried = generation
	}
}

// namedStale bounds how many units one record names that were not tried again.
const namedStale = 5

// ahead counts those before position i; fresh are those whose evidence is of
// this generation.
func (o *order) ahead(i int, generation uint64) (counts Counts, fresh int, stale []string) {
	var n [len(whys)]int
	for at, m := range o.marks[:i] {
		n[m.why]++
		if m.tried == 0 {
			continue
		}
		if m.tried == generation {
			fresh++
		} else if len(stale) < namedStale {
			stale = append(stale, o.keys[at].Path)
		}
	}
	return countsOf(n), fresh, stale
}

// state lists all who wait, with each evidence once.
func (o *order) state() ([]Waiting, []Evidence) {
	var evidence []Evidence
	numbers := map[*Evidence]int{}
	waiting := make([]Waiting, len(o.keys))
	for i, k := range o.keys {
		waiting[i] = Waiting{Unit: k.Path, Order: orderOf(k), Tried: o.marks[i].tried}
		e := o.why[i]
		if e == nil {
			continue
		}
		if numbers[e] == 0 {
			evidence = append(evidence, *e)
			numbers[e] = len(evidence)
		}
		waiting[i].Why = numbers[e]
	}
	return waiting, evidence
}
