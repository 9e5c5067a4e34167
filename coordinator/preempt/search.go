package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// The bounds. A step examines a single set; a set that is tried on a host counts
// as fitSteps steps, about its greater cost.
const (
	maxExact   = 12      // candidates of which all sets are looked at
	maxOnField = 1 << 12 // steps on one node before it is searched greedily
	maxSteps   = 1 << 17 // steps of one Find before every node is
	fitSteps   = 64
)

// search is one Find.
//
// Invariant: fields ascend by node ID, and have no holder of a rank below first, whose
// priority is not lower.
type search struct {
	*Index
	unit   *place.Unit
	want   cluster.Amounts
	first  int
	fields []field
	at     []int // position in fields of each node of the Index, -1 for none

	steps      int
	scratch    map[*fit.Host]*fit.Free
	assignment resource.Assignment
}

// search begins a search for a unit.
func (x *Index) search(u *place.Unit, priority int32) *search {
	s := &search{
		Index: x, unit: u, want: cluster.Least(&u.Request), first: x.firstBelow(priority),
		fields: make([]field, 0, len(x.nodes)), at: make([]int, len(x.nodes)), scratch: map[*fit.Host]*fit.Free{},
	}
	for i, n := range x.nodes {
		s.at[i] = -1
		if !serves(n, u) {
			continue
		}
		s.at[i] = len(s.fields)
		f := field{node: n, here: x.here[i], suffix: x.suffix[i], free: n.FreeAmounts()}
		f.exclude(s.first)
		f.base = s.room(&f, nil, u.Members)
		s.fields = append(s.fields, f)
	}
	return s
}

// serves reports whether a unit may go to a node that is ready.
func serves(n *cluster.Node, u *place.Unit) bool {
	return !n.Unschedulable && u.AllowsAll(n)
}

// firstBelow is the first rank of lower priority.
func (x *Index) firstBelow(priority int32) int {
	rank, _ := slices.BinarySearchFunc(x.holders, priority, func(c candidate, priority int32) int {
		if c.Priority < priority { // model: mutant EVICT_PEER
			return 0
		}
		return -1
	})
	return rank
}

// ranks are those of the holders of lower priority that would free something where
// the unit may go, ascending.
func (s *search) ranks() []int {
	ranks := make([]int, 0, len(s.holders)-s.first)
	for rank := s.first; rank < len(s.holders); rank++ {
		if slices.ContainsFunc(s.holders[rank].nodes, func(i int) bool { return s.at[i] >= 0 }) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// fieldsOf are the fields where a holder would free something, ascending.
func (s *search) fieldsOf(rank int) []int {
	fields := make([]int, 0, len(s.holders[rank].nodes))
	for _, i := range s.holders[rank].nodes {
		if s.at[i] >= 0 {
			fields = append(fields, s.at[i])
		}
	}
	return fields
}

// choose returns the victims' ranks in ascending order.
func (s *search) choose() ([]int, bool) {
	switch {
	case s.base() >= s.unit.Members:
		return nil, true
	case s.unit.Members == 1:
		return s.single()
	}
	ranks := s.ranks()
	if len(ranks) <= maxExact {
		return s.exact(ranks)
	}
	chosen, ok := s.gang(ranks)
	if !ok {
		return nil, false
	}
	return s.reduce(chosen), true
}

// base is how many members fit without any eviction.
func (s *search) base() int {
	sum := 0
	for i := range s.fields {
		if sum += s.fields[i].base; sum >= s.unit.Members {
			break
		}
	}
	return sum
}

// total is how many members fit with these ranks evicted, up to all.
func (s *search) total(evicted []int) int {
	sum := 0
	for i := range s.fields {
		f := &s.fields[i]
		if f.touches(evicted) {
			sum += s.room(f, evicted, s.unit.Members)
		} else {
			sum += f.base
		}
		if sum >= s.unit.Members {
			return s.unit.Members
		}
	}
	return sum
}

// touches reports whether any of these ranks has something on the field.
func (f *field) touches(evicted []int) bool {
	for i := range f.here {
		if _, found := slices.BinarySearch(evicted, f.here[i].rank); found {
			return true
		}
	}
	return false
}
