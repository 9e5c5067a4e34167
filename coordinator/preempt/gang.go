package preempt

import "slices"

// exact looks at every set out of these ranks that may be the best.
func (s *search) exact(ranks []int) ([]int, bool) {
	e := everySet{search: s, ranks: ranks, memo: map[memoKey]int{}}
	for i := range s.fields {
		f := &s.fields[i]
		if !f.touches(ranks) {
			e.sure += f.base
			continue
		}
		var mask uint16
		for _, o := range f.here {
			if at, found := slices.BinarySearch(ranks, o.rank); found {
				mask |= 1 << at
			}
		}
		e.fields, e.masks = append(e.fields, i), append(e.masks, mask)
	}
	e.from(0, 0)
	return e.best, e.found
}

// everySet is an exhaustive search.
type everySet struct {
	*search
	ranks  []int
	sure   int      // members on nodes where none of the ranks is
	fields []int    // the other nodes
	masks  []uint16 // and which of the ranks are there
	memo   map[memoKey]int

	chosen, best []int
	found        bool
}

type memoKey struct {
	field int
	mask  uint16
}

// from looks at chosen, whose positions in ranks are the bits of mask, and at
// chosen with every set out of ranks[i:] added.
func (e *everySet) from(i int, mask uint16) {
	if e.enough(mask) {
		e.best, e.found = slices.Clone(e.chosen), true
		return
	}
	for j := len(e.ranks) - 1; j >= i; j-- {
		e.chosen = append(e.chosen, e.ranks[j])
		if !e.found || !e.hopeless(e.chosen, e.best) {
			e.from(j+1, mask|1<<j)
		}
		e.chosen = e.chosen[:len(e.chosen)-1]
	}
}

// enough reports whether all members fit with the set evicted.
func (e *everySet) enough(mask uint16) bool {
	sum := e.sure
	for k, i := range e.fields {
		if sum >= e.unit.Members {
			return true
		}
		f := &e.search.fields[i]
		if mask&e.masks[k] == 0 {
			sum += f.base
			continue
		}
		key := memoKey{i, mask & e.masks[k]}
		n, known := e.memo[key]
		if !known {
			n = e.room(f, e.chosen, e.unit.Members)
			e.memo[key] = n
		}
		sum += n
	}
	return sum >= e.unit.Members
}

// gang gathers a set for many members: in each round the candidates with the least
// loss for each member that gets room. ranks are all candidates for eviction.
func (s *search) gang(ranks []int) ([]int, bool) {
	first, ok := s.ceiling(ranks)
	if !ok {
		return nil, false
	}
	for i := range s.fields {
		s.fields[i].exclude(first)
	}
	var evicted []int
	have := make([]int, len(s.fields))
	sum := 0
	for i := range s.fields {
		have[i] = s.fields[i].base
		sum += have[i]
	}
	offers := make([]offer, len(s.fields))
	for sum < s.unit.Members {
		missing := s.unit.Members - sum
		best := -1
		for i := range offers {
			o := &offers[i]
			if !o.known && best >= 0 && s.isDearer(i, o, &offers[best], evicted, have, missing) {
				continue
			}
			if !o.known {
				s.complete(i, o, evicted, have, missing)
			}
			if o.set != nil && (best < 0 || s.cheaper(o.set, min(o.gain, missing), offers[best].set, min(offers[best].gain, missing)) < 0) {
				best = i
			}
		}
		if best < 0 {
			return nil, false
		}
		evicted = union(evicted, offers[best].set)
		changed := offers[best].fields
		for _, i := range changed {
			now := s.room(&s.fields[i], evicted, s.unit.Members)
			sum += now - have[i]
			have[i] = now
		}
		forget(offers, changed)
	}
	return evicted, true
}

// offer is the best way to fit one more member on one node.
type offer struct {
	known  bool
	set    []int // nil for none
	fields []int // where it frees something
	gain   int   // members, on all these

	// No set that makes room there is better than floor, nil where that is not known, and no
	// set gains more than most.
	bounded bool
	floor   []int
	most    int
}

// isDearer reports that an offer that was not made yet is no better than the best one. It looks
// at amounts alone, which costs a small part of a fit.
func (s *search) isDearer(i int, o, best *offer, evicted, have []int, missing int) bool {
	if !o.bounded {
		s.bound(i, o, evicted, have[i])
	}
	return o.known || o.floor != nil && s.cheaper(o.floor, min(o.most, missing), best.set, min(best.gain, missing)) >= 0
}

// bound looks for the bounds of an offer.
func (s *search) bound(i int, o *offer, evicted []int, had int) {
	f := &s.fields[i]
	o.bounded, o.most = true, s.unit.Members
	w := walk{search: s, field: f, evicted: evicted, had: had}
	free := f.without(evicted)
	if all := free.Plus(f.suffix[0]); !w.mayFit(all) {
		o.known = true // as none
		return
	} else if !slices.ContainsFunc(f.here, func(h occupant) bool { return len(s.holders[h.rank].nodes) > 1 }) {
		o.most = most(&all, &s.want, s.unit.Members) - had
	}
	if floor, sure := w.lightest(free); sure {
		o.floor, o.known = floor, floor == nil
	}
}

// complete makes the offer of one node.
func (s *search) complete(i int, o *offer, evicted, have []int, missing int) {
	set, room := s.onField(&s.fields[i], evicted, have[i], have[i]+missing, nil)
	*o = offer{known: true, set: set}
	if o.set == nil {
		return
	}
	o.fields = s.touched(o.set)
	o.gain = room - have[i]
	for _, j := range o.fields {
		if j != i {
			o.gain += s.room(&s.fields[j], union(evicted, o.set), have[j]+missing) - have[j]
		}
	}
	o.gain = max(1, o.gain) // fits are not quite monotonic: one place more here, one less there
}

// forget drops the offers that an eviction changes: those of the nodes where it
// frees something, and those with a unit that frees something there.
func forget(offers []offer, changed []int) {
	for i := range offers {
		_, here := slices.BinarySearch(changed, i)
		if here || slices.ContainsFunc(offers[i].fields, func(j int) bool { _, found := slices.BinarySearch(changed, j); return found }) {
			offers[i] = offer{}
		}
	}
}

// touched are the fields where any of a set frees something, ascending.
func (s *search) touched(set []int) []int {
	var fields []int
	for _, rank := range set {
		fields = append(fields, s.fieldsOf(rank)...)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// ceiling returns the first rank of the lowest priority that suffices: with it
// and everything below it gone there is room. False if not even with all gone.
func (s *search) ceiling(ranks []int) (int, bool) {
	var levels []int // the position in ranks of the first of each priority
	for i, rank := range ranks {
		if i == 0 || s.holders[rank].Priority != s.holders[ranks[i-1]].Priority {
			levels = append(levels, i)
		}
	}
	slices.Reverse(levels)
	at, _ := slices.BinarySearchFunc(levels, true, func(first int, _ bool) int {
		if s.total(ranks[first:]) >= s.unit.Members {
			return 0
		}
		return -1
	})
	if at == len(levels) {
		return 0, false
	}
	return ranks[levels[at]], true
}

// reduce makes a set minimal. The best part of a small one is looked for.
func (s *search) reduce(set []int) []int {
	set = s.spareMembers(set)
	if len(set) > maxExact {
		return set
	}
	if best, ok := s.exact(set); ok {
		return best
	}
	return set
}

// spareMembers removes superfluous units from a set, the most valuable first, until
// no unit is superfluous.
func (s *search) spareMembers(set []int) []int {
	have := make([]int, len(s.fields))
	sum := 0
	for i := range s.fields {
		have[i] = s.room(&s.fields[i], set, s.unit.Members)
		sum += have[i]
	}
	for {
		before := len(set)
		for i := 0; i < len(set); {
			rest := slices.Delete(slices.Clone(set), i, i+1)
			fields := s.fieldsOf(set[i])
			left := sum
			now := make([]int, len(fields))
			for k, j := range fields {
				now[k] = s.room(&s.fields[j], rest, s.unit.Members)
				left += now[k] - have[j]
			}
			if left < s.unit.Members {
				i++
				continue
			}
			set, sum = rest, left
			for k, j := range fields {
				have[j] = now[k]
			}
		}
		if len(set) == before {
			return set
		}
	}
}
