package preempt_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// drawDemands draws what is to be placed in domains: a gang, a member that joins a gang, or
// the allocations of a group, with named subgroups or without.
func drawDemands(t *rapid.T, nodes []*cluster.Node) []place.Unit {
	rules := &topology.Rules{Levels: []topology.Level{{Key: "block", Required: rapid.Bool().Draw(t, "block required")}, {Key: "rack", Required: rapid.Bool().Draw(t, "rack required")}}}
	demand := func(members int) place.Unit {
		return place.Unit{Members: members, Request: resource.Request{GPUs: rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpus"), NUMA: resource.NUMANone}, Topology: rules}
	}
	kind := rapid.IntRange(0, 3).Draw(t, "kind")
	switch kind {
	case 0:
		return []place.Unit{demand(rapid.IntRange(1, 3).Draw(t, "members"))}
	case 1:
		u := demand(1)
		u.Joins = &place.Joining{Nodes: []resource.NodeID{rapid.SampledFrom(nodes).Draw(t, "mate").ID}, Before: 1}
		return []place.Unit{u}
	}
	var units []place.Unit
	for range rapid.IntRange(2, 3).Draw(t, "units") {
		u := demand(1)
		if kind == 3 {
			named := *rules
			named.Name, named.Subgroup, named.SubgroupLevel = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subgroup"), 1, 1
			u.Topology = &named
		}
		units = append(units, u)
	}
	return units
}

// isBetter orders sets of victims as the package says, by their full value: fewer units of
// the highest priority in which they differ, then the less valuable unit in the first place
// where they differ.
func isBetter(a, b []preempt.Holder) bool {
	value := func(x, y preempt.Holder) int {
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Started, y.Started), cmp.Compare(x.Unit, y.Unit))
	}
	a, b = slices.SortedFunc(slices.Values(a), value), slices.SortedFunc(slices.Values(b), value)
	for level := int32(priority); level >= 0; level-- {
		count := func(set []preempt.Holder) (n int) {
			for _, h := range set {
				if h.Priority == level {
					n++
				}
			}
			return n
		}
		if count(a) != count(b) {
			return count(a) < count(b)
		}
	}
	for i := range a {
		if c := value(a[i], b[i]); c != 0 {
			return c > 0
		}
	}
	return false
}

func unitsOf(set []preempt.Holder) (units []string) {
	for _, h := range set {
		units = append(units, h.Unit)
	}
	return units
}

// TestVictimsInDomainsAgainstBruteForce compares the victims for a gang, a group, and a
// member that joins a gang, under rules about domains, with all sets of units of lower
// priority: the victims make room, no part of them does, and no set that makes room is
// better.
func TestVictimsInDomainsAgainstBruteForce(t *testing.T) {
	found, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		nodes := hostsOf(t, "dgx-a100", rapid.IntRange(1, 5).Draw(t, "nodes"))
		var holders []preempt.Holder
		for i := range rapid.IntRange(0, 7).Draw(t, "holders") {
			from := rapid.IntRange(0, len(nodes)-1).Draw(t, "from")
			h, ok := start(nodes[from:], fmt.Sprintf("u%d", i), rapid.SampledFrom([]int32{0, 0, 0, 1, 2, priority}).Draw(t, "priority"), int64(rapid.IntRange(1, 4).Draw(t, "started")),
				rapid.IntRange(1, 2).Draw(t, "parts"), resource.Request{GPUs: rapid.IntRange(2, 8).Draw(t, "held")})
			if ok {
				holders = append(holders, h)
			}
		}
		state := cluster.NewState(nodes...)
		for i, n := range state.Nodes() {
			state.Relabel(n, map[string]string{"rack": fmt.Sprint(i / 2), "block": fmt.Sprint(i / 4)}, nil)
		}
		units := drawDemands(t, nodes)
		lower := slices.DeleteFunc(slices.Clone(holders), func(h preempt.Holder) bool { return h.Priority >= priority })
		makesRoom := func(set []preempt.Holder) bool {
			_, ok := preempt.WithTogether(state, units, set)
			return ok
		}
		highest := func(set []preempt.Holder) int32 {
			most := int32(math.MinInt32)
			for _, h := range set {
				most = max(most, h.Priority)
			}
			return most
		}
		wantOK, want, best := false, int32(math.MaxInt32), []preempt.Holder(nil)
		for set := range subsets(lower) {
			if makesRoom(set) {
				if !wantOK || isBetter(set, best) {
					best = set
				}
				wantOK, want = true, min(want, highest(set))
			}
		}
		plan, names, ok := preempt.Together(state, units, priority, holders)
		if ok != wantOK {
			t.Fatalf("victims %v, %t; some set of lower priority makes room: %t", names, ok, wantOK)
		}
		if !ok {
			refused++
			return
		}
		found++
		victims := slices.DeleteFunc(slices.Clone(lower), func(h preempt.Holder) bool { return !slices.Contains(names, h.Unit) })
		switch {
		case len(victims) != len(names):
			t.Fatalf("victims %v: want lower priorities alone", names)
		case highest(victims) != want:
			t.Fatalf("victims %v up to priority %d, and a set up to %d makes room", names, highest(victims), want)
		}
		if isBetter(best, victims) {
			t.Fatalf("victims %v: want %v", names, unitsOf(best))
		}
		for set := range subsets(victims) {
			if makesRoom(set) != (len(set) == len(victims)) {
				t.Fatalf("victims %v: of them %d make room", names, len(set))
			}
		}
		for i, members := range plan {
			if len(members) != units[i].Members {
				t.Fatalf("unit %d has %d places", i, len(members))
			}
		}
	})
	if found == 0 || refused == 0 {
		t.Errorf("%d found, %d refused: want both", found, refused)
	}
}

// subsets yields all parts of a list, the whole list last.
func subsets(list []preempt.Holder) func(yield func([]preempt.Holder) bool) {
	return func(yield func([]preempt.Holder) bool) {
		for mask := range 1 << len(list) {
			var set []preempt.Holder
			for i := range list {
				if mask>>i&1 == 1 {
					set = append(set, list[i])
				}
			}
			if !yield(set) {
				return
			}
		}
	}
}
