package scheduling_test

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// This file is the choice of victims as it was before cluster.State: it counts on
// copies of what is free, and places on copies of nodes.

// oldFind returns the best set of victims for a unit of the given priority, as
// the package comment orders them; false if none makes room. A victim's
// priority is strictly lower, it is not pinned, and all its parts are on nodes
// that are Ready: what an agent out of reach holds is freed by nobody. Nodes
// ascend by ID and are as they were afterwards.
func oldFind(nodes []*cluster.Node, u place.Unit, priority int32, holders []preempt.Holder) (preempt.Plan, bool) {
	s := newSearch(nodes, &u, priority, holders)
	chosen, ok := s.choose()
	if !ok {
		return preempt.Plan{}, false
	}
	victims := make([]preempt.Holder, len(chosen))
	plan := preempt.Plan{}
	for i, rank := range chosen {
		victims[i] = *s.holders[rank].Holder
		plan.Victims = append(plan.Victims, victims[i].Unit)
	}
	slices.Sort(plan.Victims)
	plan.Members, ok = oldWith(nodes, u, victims)
	return plan, ok
}

// oldWith returns where the unit goes with exactly these holders gone; false if
// it has no room then. Whoever they are, they are not judged. Nodes ascend by
// ID and are as they were afterwards.
func oldWith(nodes []*cluster.Node, u place.Unit, victims []preempt.Holder) ([]place.Choice, bool) {
	touched := map[resource.NodeID][]resource.Assignment{}
	for _, v := range victims {
		for _, p := range v.Parts {
			touched[p.Node] = append(touched[p.Node], p.Assignment)
		}
	}
	views := make([]*cluster.Node, len(nodes))
	for i, n := range nodes {
		views[i] = without(n, touched[n.ID])
	}
	members, ok := oldPlace(views, u)
	oldUndo(members)
	original := make(map[*cluster.Node]*cluster.Node, len(touched))
	for i, v := range views {
		if v != nodes[i] {
			original[v] = nodes[i]
		}
	}
	for i := range members {
		if n := original[members[i].Node]; n != nil {
			members[i].Node = n
		}
	}
	return members, ok
}

// without returns the node with the assignments free: itself where there are
// none. What the node does not have or counts as free already frees nothing.
func without(n *cluster.Node, gone []resource.Assignment) *cluster.Node {
	if len(gone) == 0 || n.Host == nil || n.Free == nil {
		return n
	}
	view := *n
	view.Free = n.Free.Clone()
	for _, a := range gone {
		_ = n.Host.Give(view.Free, a) // refused as a whole: nothing is freed
	}
	view.Refresh()
	return &view
}

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
	want    amounts
	holders []candidate
	fields  []field

	steps      int
	scratch    map[*fit.Host]*fit.Free
	assignment resource.Assignment
}

func newSearch(nodes []*cluster.Node, u *place.Unit, priority int32, holders []preempt.Holder) *search {
	s := &search{unit: u, want: wanted(&u.Request), scratch: map[*fit.Host]*fit.Free{}}
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
		s.fields = append(s.fields, field{node: n, free: amounts{n.FreeCPU, n.FreeMemory, n.FreeGPU}})
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
func candidateOf(h *preempt.Holder, at map[resource.NodeID]int) (candidate, bool) {
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
	f.suffix = make([]amounts, len(f.here)+1)
	for i := len(f.here) - 1; i >= 0; i-- {
		f.suffix[i] = f.suffix[i+1].plus(f.here[i].sum)
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
