package preempt

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// The bounds. A step is one set looked at; one that is tried on a host counts
// for fitSteps, about what it takes more.
const (
	maxExact   = 12      // candidates of which all sets are looked at
	maxOnField = 1 << 12 // steps on one node before it is searched greedily
	maxSteps   = 1 << 17 // steps of one Find before every node is
	fitSteps   = 64
)

// search is one Find.
//
// Invariant: holders ascend by byValue; fields ascend by node ID.
type search struct {
	unit    *place.Unit
	want    cluster.Amounts
	holders []candidate
	fields  []field

	steps      int
	scratch    map[*fit.Host]*fit.Free
	assignment resource.Assignment
}

func newSearch(state *cluster.State, u *place.Unit, priority int32, holders []Holder) *search {
	s := &search{unit: u, want: cluster.Least(&u.Request), scratch: map[*fit.Host]*fit.Free{}}
	nodes := state.Nodes()
	at := make(map[resource.NodeID]int, len(nodes)) // in fields, -1 for a node that is ready and not for this unit
	for _, n := range nodes {
		if !n.Ready || n.Host == nil || n.Free == nil {
			continue
		}
		at[n.ID] = -1
		if n.Unschedulable || !u.Constraints.Allows(n.Labels) {
			continue
		}
		at[n.ID] = len(s.fields)
		s.fields = append(s.fields, field{node: n, free: n.FreeAmounts()})
	}
	for i := range holders {
		if h := &holders[i]; h.Priority < priority && !h.Pinned { // model: mutant EVICT_PEER
			if c, ok := candidateOf(h, at); ok {
				s.holders = append(s.holders, c)
			}
		}
	}
	slices.SortFunc(s.holders, byValue)
	for rank := range s.holders {
		s.occupy(rank, at)
	}
	for i := range s.fields {
		s.fields[i].addUp()
		s.fields[i].base = s.room(&s.fields[i], nil, u.Members)
	}
	return s
}

// candidateOf finds where a holder would free something; false if nowhere, or
// if not all of it is in reach.
func candidateOf(h *Holder, at map[resource.NodeID]int) (candidate, bool) {
	c := candidate{Holder: h}
	for _, p := range h.Parts {
		i, ready := at[p.Node]
		if !ready {
			return candidate{}, false
		}
		if i >= 0 {
			c.fields = append(c.fields, i)
		}
	}
	slices.Sort(c.fields)
	c.fields = slices.Compact(c.fields)
	return c, len(c.fields) > 0
}

// occupy enters a candidate's parts into the fields.
func (s *search) occupy(rank int, at map[resource.NodeID]int) {
	for _, i := range s.holders[rank].fields {
		f := &s.fields[i]
		o := occupant{rank: rank}
		for _, p := range s.holders[rank].Parts {
			if at[p.Node] == i {
				o.gives = append(o.gives, p.Assignment)
			}
		}
		o.sum = sumOf(f.node, o.gives)
		f.here = append(f.here, o)
	}
}

// addUp computes suffix.
func (f *field) addUp() {
	f.suffix = make([]cluster.Amounts, len(f.here)+1)
	for i := len(f.here) - 1; i >= 0; i-- {
		f.suffix[i] = f.suffix[i+1].Plus(f.here[i].sum)
	}
}

// choose returns the victims' ranks in ascending order.
func (s *search) choose() ([]int, bool) {
	switch {
	case s.base() >= s.unit.Members:
		return nil, true
	case s.unit.Members == 1:
		return s.single()
	case len(s.holders) <= maxExact:
		all := make([]int, len(s.holders))
		for i := range all {
			all[i] = i
		}
		return s.exact(all)
	}
	chosen, ok := s.gang()
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
