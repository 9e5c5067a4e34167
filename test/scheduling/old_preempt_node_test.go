package scheduling_test

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// This file is one node in the old choice of victims.

// candidate is a holder that may be evicted.
type candidate struct {
	*preempt.Holder
	fields []int // where its parts are, ascending
}

// field is one node that the unit may go to, with those who would free
// something there.
//
// Invariant: here ascends by rank; suffix[i] is the sum of here[i:].
type field struct {
	node   *cluster.Node
	here   []occupant
	suffix []amounts
	free   amounts // without any eviction
	base   int     // members that fit without any eviction
}

// occupant is what a candidate has on one node.
type occupant struct {
	rank  int
	gives []resource.Assignment
	sum   amounts
}

// amounts is what decides cheaply that there cannot be room: no state of a
// host has room for a request of more than is free of any of these.
type amounts struct {
	cpu    resource.Millicores
	memory resource.Bytes
	gpu    resource.Milli // of healthy devices
}

func (a amounts) plus(b amounts) amounts {
	return amounts{a.cpu + b.cpu, a.memory + b.memory, a.gpu + b.gpu}
}

func (a amounts) covers(want amounts) bool {
	return a.cpu >= want.cpu && a.memory >= want.memory && a.gpu >= want.gpu
}

// wanted is the least that a member takes; a core has at least one thread.
func wanted(r *resource.Request) amounts {
	return amounts{r.CPU + resource.Millicores(r.Cores)*resource.WholeCPU, r.Memory, r.GPUMilli()}
}

// sumOf is what an assignment gives back to a node.
func sumOf(n *cluster.Node, list []resource.Assignment) amounts {
	var sum amounts
	for i := range list {
		for _, g := range list[i].CPUs {
			sum.cpu += g.Milli
		}
		for _, g := range list[i].Memory {
			sum.memory += g.Bytes
		}
		for _, g := range list[i].GPUs {
			if g.Index < 64 && n.Free.Unhealthy&(1<<g.Index) == 0 {
				sum.gpu += g.Milli
			}
		}
	}
	return sum
}

// room counts how many members fit on a field with these ranks evicted, up to
// limit. It works on a copy of what is free.
func (s *search) room(f *field, evicted []int, limit int) int {
	sum := f.free
	for i := range f.here {
		if _, gone := slices.BinarySearch(evicted, f.here[i].rank); gone {
			sum = sum.plus(f.here[i].sum)
		}
	}
	if !sum.covers(s.want) {
		return 0
	}
	s.steps += fitSteps
	h := f.node.Host
	free := s.scratch[h]
	if free == nil {
		free = &fit.Free{}
		s.scratch[h] = free
	}
	free.CopyFrom(f.node.Free)
	for i := range f.here {
		if _, gone := slices.BinarySearch(evicted, f.here[i].rank); !gone {
			continue
		}
		for _, a := range f.here[i].gives {
			_ = h.Give(free, a) // refused as a whole: nothing is freed
		}
	}
	n := 0
	for n < limit && h.Assign(free, s.unit.Request, &s.assignment) {
		if n++; n == limit {
			break
		}
		if h.Take(free, s.assignment) != nil {
			break
		}
		s.steps += fitSteps
	}
	return n
}

// single finds the best set for one member: all of it is on one node, for
// whoever is elsewhere would be superfluous.
func (s *search) single() ([]int, bool) {
	var best []int
	for i := range s.fields {
		if set := s.onField(&s.fields[i], nil, 0, best); set != nil {
			best = set
		}
	}
	return best, best != nil
}

// onField returns the best set of further candidates of one node with which
// more than had members fit there, given those evicted already; nil where no
// set is better than best (nil for: any is).
func (s *search) onField(f *field, evicted []int, had int, best []int) []int {
	w := walk{search: s, field: f, evicted: evicted, had: had, best: best, limit: min(s.steps+maxOnField, maxSteps)}
	free := f.free
	for i := range f.here {
		if _, gone := slices.BinarySearch(evicted, f.here[i].rank); gone {
			free = free.plus(f.here[i].sum)
		}
	}
	if !free.plus(f.suffix[0]).covers(s.want) {
		return nil
	}
	if w.from(0, free); w.found == nil && w.spent {
		w.found = s.greedyOnField(f, evicted, had, best)
	}
	return w.found
}

// walk looks at the sets of one node's candidates, each once, the less
// valuable first.
type walk struct {
	*search
	field   *field
	evicted []int
	had     int

	chosen, best, found []int
	limit               int
	spent               bool // the limit was reached
}

// from looks at chosen, and at chosen with every set out of here[i:] added.
// Those are passed by that cannot make room or cannot be better.
func (w *walk) from(i int, have amounts) {
	if w.steps++; w.steps > w.limit {
		w.spent = true
		return
	}
	if len(w.chosen) > 0 && have.covers(w.want) && w.room(w.field, union(w.evicted, w.chosen), w.had+1) > w.had {
		w.best = slices.Clone(w.chosen)
		w.found = w.best
		return
	}
	for j := len(w.field.here) - 1; j >= i && !w.spent; j-- {
		o := &w.field.here[j]
		if !have.plus(w.field.suffix[j]).covers(w.want) {
			continue
		}
		if _, gone := slices.BinarySearch(w.evicted, o.rank); gone {
			continue
		}
		w.chosen = append(w.chosen, o.rank)
		if w.best == nil || !w.hopeless(w.chosen, w.best) {
			w.from(j+1, have.plus(o.sum))
		}
		w.chosen = w.chosen[:len(w.chosen)-1]
	}
}

// greedyOnField is onField for too many sets: candidates are added until there
// is room, the least valuable first, and then the superfluous are spared, the
// most valuable first.
func (s *search) greedyOnField(f *field, evicted []int, had int, best []int) []int {
	var set []int
	for j := len(f.here) - 1; ; j-- {
		if len(set) > 0 && s.room(f, union(evicted, set), had+1) > had {
			break
		}
		if j < 0 {
			return nil
		}
		rank := f.here[j].rank
		if best != nil && s.holders[rank].Priority > s.holders[best[0]].Priority {
			return nil
		}
		if _, gone := slices.BinarySearch(evicted, rank); !gone {
			set = slices.Insert(set, 0, rank)
		}
	}
	for i := 0; i < len(set); {
		rest := slices.Delete(slices.Clone(set), i, i+1)
		if s.room(f, union(evicted, rest), had+1) > had {
			set, i = rest, 0 // what was needed beside it may not be now
			continue
		}
		i++
	}
	if best != nil && s.compare(set, best) >= 0 {
		return nil
	}
	return set
}

// union merges two sets.
func union(a, b []int) []int {
	merged := append(slices.Clone(a), b...)
	slices.Sort(merged)
	return slices.Compact(merged)
}
