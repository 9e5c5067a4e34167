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
		if set, _ := s.onField(&s.fields[i], nil, 0, 1, best); set != nil {
			best = set
		}
	}
	return best, best != nil
}

// onField returns the best set of further candidates of one node with which
// more than had members fit there, given those evicted already, and how many fit then, up to
// limit; nil where no set is better than best (nil for: any is).
func (s *search) onField(f *field, evicted []int, had, limit int, best []int) ([]int, int) {
	w := walk{search: s, field: f, evicted: evicted, had: had, members: limit, best: best, limit: min(s.steps+maxOnField, maxSteps)}
	free := f.without(evicted)
	if !w.mayFit(free.Plus(f.suffix[0])) {
		return nil, 0
	}
	if best != nil {
		if light, sure := w.lightest(free); sure && light == nil {
			return nil, 0
		}
	}
	if w.from(0, free); w.found == nil && w.spent {
		w.greedy(free)
	}
	return w.found, w.fit
}

// walk looks at the sets of one node's candidates, each once, the less
// valuable first.
type walk struct {
	*search
	field   *field
	evicted []int
	had     int // members that fit
	members int // that are counted at most

	chosen, best, found []int
	fit                 int // members that fit without found
	limit               int
	spent               bool // the limit was reached

	light bool // amounts alone decide
	looks int  // of a light walk
}

// maxLooks bounds the sets of one node of which a light walk looks at the amounts.
const maxLooks = 1 << 8

// lightest is the best set of which the amounts suffice, and which is better than best: nil for
// none. No set that makes room is better than it. sure is false where it was not found out.
func (w *walk) lightest(have cluster.Amounts) (set []int, sure bool) {
	l := walk{search: w.search, field: w.field, evicted: w.evicted, had: w.had, best: w.best, light: true}
	l.from(0, have)
	return l.found, !l.spent
}

// mayFit reports whether amounts suffice for more members than had.
func (w *walk) mayFit(have cluster.Amounts) bool { return most(&have, &w.want, w.had+1) > w.had }

// makesRoom reports whether more members than had fit without a set, which is then found.
func (w *walk) makesRoom(set []int) bool {
	if w.light {
		w.found = slices.Clone(set)
		return true
	}
	n := w.room(w.field, union(w.evicted, set), w.members)
	if n > w.had {
		w.found, w.fit = slices.Clone(set), n
	}
	return n > w.had
}

// isSpent counts a step.
func (w *walk) isSpent() bool {
	if w.light {
		w.looks++
		return w.looks > maxLooks
	}
	w.steps++
	return w.steps > w.limit
}

// from looks at chosen, and at chosen with every set out of here[i:] added.
// Those are passed by that cannot make room or cannot be better.
func (w *walk) from(i int, have cluster.Amounts) {
	if w.isSpent() {
		w.spent = true
		return
	}
	if len(w.chosen) > 0 && w.mayFit(have) && w.makesRoom(w.chosen) {
		w.best = w.found
		return
	}
	for j := len(w.field.here) - 1; j >= i && !w.spent; j-- {
		o := &w.field.here[j]
		if !w.mayFit(have.Plus(w.field.suffix[j])) {
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

// greedy is from for too many sets: candidates are added until there
// is room, the least valuable first, and then the superfluous are spared, the
// most valuable first. have are the amounts that are free without any of them.
func (w *walk) greedy(have cluster.Amounts) {
	if w.best == nil && w.room(w.field, union(w.evicted, w.everyRank()), w.had+1) <= w.had {
		return
	}
	var set []int // the least valuable first
	for j := len(w.field.here) - 1; ; j-- {
		if len(set) > 0 && w.mayFit(have) && w.makesRoom(set) {
			break
		}
		if j < 0 {
			return
		}
		o := &w.field.here[j]
		if w.best != nil && w.holders[o.rank].Priority > w.holders[w.best[0]].Priority {
			return
		}
		if _, gone := slices.BinarySearch(w.evicted, o.rank); !gone {
			set = append(set, o.rank)
			have = have.Plus(o.sum)
		}
	}
	slices.Reverse(set)
	for i := 0; i < len(set); {
		rest := slices.Delete(slices.Clone(set), i, i+1)
		if w.makesRoom(rest) {
			set, i = rest, 0 // units that were needed beside it may be superfluous now
			continue
		}
		i++
	}
	if slices.Sort(w.found); w.best != nil && w.compare(w.found, w.best) >= 0 {
		w.found = nil
	}
}

// everyRank has all candidates of the node.
func (w *walk) everyRank() []int {
	ranks := make([]int, len(w.field.here))
	for i := range ranks {
		ranks[i] = w.field.here[i].rank
	}
	return ranks
}

// union merges two sets.
func union(a, b []int) []int {
	merged := append(slices.Clone(a), b...)
	slices.Sort(merged)
	return slices.Compact(merged)
}
