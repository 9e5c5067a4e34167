package preempt

import "cmp"

// A rank is a candidate's position by value, the most valuable first; a set of
// victims is a list of ranks in ascending order.

// byValue orders candidates: the most valuable first.
func byValue(a, b candidate) int {
	if c := cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Started, b.Started)); c != 0 {
		return c // names are seldom compared: cmp.Or would always do that
	}
	return cmp.Compare(a.Unit, b.Unit)
}

// compare is compareSets of the search's candidates.
func (s *search) compare(a, b []int) int { return compareSets(s.holders, a, b) }

// compareSets orders sets of candidates: negative where a is better. See the package comment.
func compareSets(of []candidate, a, b []int) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if c := cmp.Compare(of[a[i]].Priority, of[b[i]].Priority); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	for i := range a {
		if c := cmp.Compare(b[i], a[i]); c != 0 {
			return c
		}
	}
	return 0
}

// hopeless reports whether neither a nor a with any less valuable ranks added
// can be better than best.
func (s *search) hopeless(a, best []int) bool {
	for i := 0; i < len(a) && i < len(best); i++ {
		if c := cmp.Compare(s.holders[a[i]].Priority, s.holders[best[i]].Priority); c != 0 {
			return c > 0
		}
	}
	return len(a) > len(best) || len(a) == len(best) && s.compare(a, best) >= 0
}

// cheaper orders sets by loss for each member gained: negative where a, which
// gains gainA > 0, is the better bargain than b, which gains gainB > 0. The
// loss is the number of units of the highest priority, then of the next.
func (s *search) cheaper(a []int, gainA int, b []int, gainB int) int {
	for i, j := 0, 0; i < len(a) || j < len(b); {
		level := s.levelAt(a, i)
		if l := s.levelAt(b, j); l > level {
			level = l
		}
		inA, inB := s.countAt(a, i, level), s.countAt(b, j, level)
		if c := cmp.Compare(inA*gainB, inB*gainA); c != 0 {
			return c
		}
		i, j = i+inA, j+inB
	}
	return cmp.Or(cmp.Compare(gainB, gainA), s.compare(a, b))
}

// levelAt is the priority of the i-th of a set, lowest where it has ended.
func (s *search) levelAt(set []int, i int) int64 {
	if i >= len(set) {
		return -1 << 40
	}
	return int64(s.holders[set[i]].Priority)
}

// countAt counts the units of one priority from position i on.
func (s *search) countAt(set []int, i int, level int64) int {
	n := 0
	for i+n < len(set) && int64(s.holders[set[i+n]].Priority) == level {
		n++
	}
	return n
}
