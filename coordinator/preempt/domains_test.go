package preempt_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// inRacks labels nodes with racks of two.
func inRacks(state *cluster.State) {
	for i, n := range state.Nodes() {
		state.Relabel(n, map[string]string{"rack": fmt.Sprint(i / 2)}, nil)
	}
}

// TestVictimsOfAGangInOneDomainAreNeeded draws units on racks of two hosts. The victims
// have a lower priority and make room together in one rack, none of them is superfluous,
// no domain has a set of fewer units whose values are as low, and where there are none, not
// even the end of all units of lower priority makes room.
func TestVictimsOfAGangInOneDomainAreNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := hostsOf(t, "dgx-a100", rapid.IntRange(1, 6).Draw(t, "nodes"))
		var holders []preempt.Holder
		for i := range rapid.IntRange(0, 8).Draw(t, "holders") {
			from := rapid.IntRange(0, len(nodes)-1).Draw(t, "from")
			h, ok := start(nodes[from:], fmt.Sprintf("u%d", i), int32(rapid.IntRange(0, priority).Draw(t, "priority")), int64(rapid.IntRange(1, 4).Draw(t, "started")),
				rapid.IntRange(1, 2).Draw(t, "parts"), resource.Request{GPUs: rapid.IntRange(1, 8).Draw(t, "held")})
			if ok {
				holders = append(holders, h)
			}
		}
		state := cluster.NewState(nodes...)
		inRacks(state)
		required := rapid.Bool().Draw(t, "required")
		unit := place.Unit{
			Members: rapid.IntRange(1, 3).Draw(t, "members"), Request: resource.Request{GPUs: rapid.IntRange(1, 8).Draw(t, "gpus")},
			Topology: &topology.Rules{Levels: []topology.Level{{Key: "rack", Required: required}}},
		}
		if rapid.Bool().Draw(t, "joins") { // the subgroup of a member that has a place
			mate := nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "mate")]
			unit.Members, unit.Topology.Subgroup = 1, 2
			unit.Joins = &place.Joining{Nodes: []resource.NodeID{mate.ID}, Own: []resource.NodeID{mate.ID}, Missing: 1}
		}
		plan, ok := preempt.Find(state, unit, priority, holders)
		lower := slices.DeleteFunc(slices.Clone(holders), func(h preempt.Holder) bool { return h.Priority >= priority })
		if !ok {
			if _, all := preempt.With(state, unit, lower); all {
				t.Fatal("no victims are found, and the end of all of lower priority makes room")
			}
			return
		}
		victims := slices.DeleteFunc(slices.Clone(lower), func(h preempt.Holder) bool { return !slices.Contains(plan.Victims, h.Unit) })
		if len(victims) != len(plan.Victims) {
			t.Fatalf("victims %v: want lower priorities alone", plan.Victims)
		}
		if _, room := preempt.With(state, unit, victims); !room || len(plan.Members) != unit.Members {
			t.Fatalf("victims %v: they make no room", plan.Victims)
		}
		for i, v := range victims {
			if _, room := preempt.With(state, unit, slices.Delete(slices.Clone(victims), i, i+1)); room {
				t.Fatalf("victims %v: %s is superfluous", plan.Victims, v.Unit)
			}
		}
		if unit.Joins != nil {
			a, _ := plan.Members[0].Node.Labels.Get("rack")
			if b, _ := state.Node(unit.Joins.Own[0]).Labels.Get("rack"); a != b {
				t.Fatalf("a member is in rack %s, its subgroup in rack %s", a, b)
			}
		}
		for _, m := range plan.Members[1:] {
			a, _ := m.Node.Labels.Get("rack")
			if b, _ := plan.Members[0].Node.Labels.Get("rack"); required && a != b {
				t.Fatalf("members are in rack %s and in rack %s", a, b)
			}
		}
	})
}

// One older unit ends in place of two newer ones, in the rack with the fewest victims.
func TestFewerVictimsInADomain(t *testing.T) {
	nodes := hostsOf(t, "dgx-a100", 4)
	var holders []preempt.Holder
	for i, gpus := range []int{4, 4, 8, 2, 6, 4, 4} { // by age, the oldest last
		from := []int{0, 0, 1, 2, 2, 3, 3}[i]
		h, ok := start(nodes[from:from+1], fmt.Sprint("u", i), 1, int64(9-i), 1, resource.Request{GPUs: gpus})
		if !ok {
			t.Fatal("a node is full too early")
		}
		holders = append(holders, h)
	}
	state := cluster.NewState(nodes...)
	inRacks(state)
	for members, want := range map[int][]string{1: {"u2"}, 2: {"u0", "u1", "u2"}} {
		unit := place.Unit{Members: members, Request: resource.Request{GPUs: 8}, Topology: &topology.Rules{Levels: []topology.Level{{Key: "rack", Required: true}}}}
		if plan, ok := preempt.Find(state, unit, priority, holders); !ok || !slices.Equal(plan.Victims, want) {
			t.Errorf("%d members: victims %v, %t; want %v", members, plan.Victims, ok, want)
		}
	}
}

// Two racks are full; of their units, those of the better rack give way.
func TestTheBestRackGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		priorities [4]int32 // of the units on the hosts, the first two in one rack
		want       []string
	}{
		"the rack of lower priorities":           {[4]int32{2, 2, 1, 1}, []string{"c", "d"}},
		"the rack with one of the highest alone": {[4]int32{2, 1, 2, 2}, []string{"a", "b"}},
		"a unit of the same priority stays":      {[4]int32{0, priority, 2, 2}, []string{"c", "d"}},
		"no rack":                                {[4]int32{0, priority, priority, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := hostsOf(t, "dgx-a100", 4)
			var holders []preempt.Holder
			for i, p := range c.priorities {
				h, ok := start(nodes[i:i+1], string(rune('a'+i)), p, int64(i+1), 1, resource.Request{GPUs: 8})
				if !ok {
					t.Fatal("a node is full too early")
				}
				holders = append(holders, h)
			}
			state := cluster.NewState(nodes...)
			inRacks(state)
			unit := place.Unit{Members: 2, Request: resource.Request{GPUs: 8}, Topology: &topology.Rules{Levels: []topology.Level{{Key: "rack", Required: true}}}}
			plan, ok := preempt.Find(state, unit, priority, holders)
			if !slices.Equal(plan.Victims, c.want) || ok != (c.want != nil) {
				t.Errorf("victims %v, %t; want %v", plan.Victims, ok, c.want)
			}
		})
	}
}

// Of many racks whose units cannot all be compared, the one with the least priorities gives
// way, wherever it is.
func TestTheBestOfManyRacksGivesWay(t *testing.T) {
	for _, best := range []int{0, 17, 39} {
		nodes, holders := crowdOf(t, 400, func(host, gpu int) int32 {
			if host/10 == best {
				return 0
			}
			return int32((host+gpu)%3) + 1
		})
		state := cluster.NewState(nodes...)
		for i, n := range state.Nodes() {
			state.Relabel(n, map[string]string{"rack": fmt.Sprint(i / 10)}, nil)
		}
		unit := place.Unit{Members: 8, Request: eightGPUs, Topology: &topology.Rules{Levels: []topology.Level{{Key: "rack", Required: true}}}}
		plan, ok := preempt.Find(state, unit, 9, holders)
		if !ok || len(plan.Victims) != 64 || plan.Victims[0] < fmt.Sprintf("ns/u%05d/0", best*80) || plan.Victims[63] >= fmt.Sprintf("ns/u%05d/0", best*80+80) {
			t.Errorf("rack %d has the least priorities; %d victims, %t: from %v", best, len(plan.Victims), ok, plan.Victims)
		}
	}
}

// Of many racks each has few trials; no victim is superfluous all the same: also where amounts
// alone do not say which units make room, for a member needs GPUs of one NUMA node.
func TestNoVictimOfManyDomainsIsSuperfluous(t *testing.T) {
	for name, c := range map[string]struct {
		rack, members int
		request       resource.Request
		victims       int
	}{
		"whole hosts":         {10, 8, eightGPUs, 64},
		"GPUs of a NUMA node": {20, 38, resource.Request{GPUs: 2, CPU: 16000, NUMA: resource.NUMASingleNode}, 76},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, holders := crowd(t, 400)
			state := cluster.NewState(nodes...)
			for i, n := range state.Nodes() {
				state.Relabel(n, map[string]string{"rack": fmt.Sprint(i / c.rack)}, nil)
			}
			unit := place.Unit{Members: c.members, Request: c.request, Topology: &topology.Rules{Levels: []topology.Level{{Key: "rack", Required: true}}}}
			plan, ok := preempt.Find(state, unit, 9, holders)
			if !ok || len(plan.Victims) != c.victims || len(plan.Members) != c.members {
				t.Errorf("%d victims for %d members, %t: want %d", len(plan.Victims), len(plan.Members), ok, c.victims)
			}
		})
	}
}
