package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
)

// single finds the best set for a unit of one member: all victims have a part on the
// same node, since a victim on another node would be superfluous.
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
			free = free.Plus(f.here[i].sum)
		}
	}
	if !free.Plus(f.suffix[0]).Covers(s.want) {
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
func (w *walk) from(i int, have cluster.Amounts) {
	if w.steps++; w.steps > w.limit {
		w.spent = true
		return
	}
	if len(w.chosen) > 0 && have.Covers(w.want) && w.room(w.field, union(w.evicted, w.chosen), w.had+1) > w.had {
		w.best = slices.Clone(w.chosen)
		w.found = w.best
		return
	}
	for j := len(w.field.here) - 1; j >= i && !w.spent; j-- {
		o := &w.field.here[j]
		if !have.Plus(w.field.suffix[j]).Covers(w.want) {
			continue
		}
		if _, gone := slices.BinarySearch(w.evicted, o.rank); gone {
			continue
		}
		w.chosen = append(w.chosen, o.rank)
		if w.best == nil || !w.hopeless(w.chosen, w.best) {
			w.from(j+1, have.Plus(o.sum))
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
			set, i = rest, 0 // units that were needed beside it may be superfluous now
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
