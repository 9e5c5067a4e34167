package place_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// drawRacks draws a cluster of racks of which GPUs are in use, and returns the free GPUs of
// each node.
func drawRacks(t *rapid.T, nodes int) (*cluster.State, []int) {
	state := cluster.NewState(dgxOf(t, rapid.IntRange(1, nodes).Draw(t, "nodes"))...)
	racks(state, rapid.IntRange(1, 2).Draw(t, "nodes of a rack"), rapid.IntRange(1, 2).Draw(t, "racks of a block"))
	var free []int
	for _, n := range state.Nodes() {
		used := rapid.IntRange(0, 8).Draw(t, "used")
		one := place.Unit{Members: max(1, used), Request: resource.Request{GPUs: 1}, Within: map[resource.NodeID]bool{n.ID: true}, Topology: &topology.Rules{}}
		if _, ok := place.Place(state, one); used > 0 && !ok {
			t.Fatalf("%s is full too early", n.ID)
		} else if used == 0 && ok {
			used = 1
		}
		free = append(free, 8-used)
	}
	return state, free
}

// TestGroupsInDomainsAgreeWithBruteForce: units with the same rules about domains, whose
// members are each as large as a number of the smaller ones, go to one domain of each
// required level wherever they can, all or none.
func TestGroupsInDomainsAgreeWithBruteForce(t *testing.T) {
	placed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		state, free := drawRacks(t, 6)
		rules := &topology.Rules{Levels: []topology.Level{level("block", rapid.Bool().Draw(t, "block required")), level("rack", rapid.Bool().Draw(t, "rack required"))}}
		var units []place.Unit
		var wants []int
		for range rapid.IntRange(2, 4).Draw(t, "units") {
			gpus := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpus")
			units = append(units, place.Unit{Members: 1, Request: resource.Request{GPUs: gpus, NUMA: resource.NUMANone}, Topology: rules})
			wants = append(wants, gpus)
		}
		slices.SortFunc(wants, func(a, b int) int { return b - a })
		domains := map[string][]int{}
		for i, n := range state.Nodes() {
			key := ""
			if rules.Levels[0].Required || rules.Levels[1].Required {
				key = labelOf(n, "block")
			}
			if rules.Levels[1].Required {
				key = labelOf(n, "block") + "/" + labelOf(n, "rack")
			}
			domains[key] = append(domains[key], free[i])
		}
		want := false
		for _, of := range domains {
			want = want || packs(of, wants)
		}
		mark := state.Checkpoint()
		plan, ok := place.Together(state, units)
		state.Rollback(mark)
		if ok != want {
			t.Fatalf("members of %v GPUs in domains with %v free: placed %t, the oracle says %t", wants, domains, ok, want)
		}
		if !ok {
			refused++
			return
		}
		placed++
		for i, members := range plan {
			if len(members) != units[i].Members {
				t.Fatalf("unit %d has %d members", i, len(members))
			}
			for l, one := range rules.Levels {
				if one.Required && labelOf(members[0].Node, rules.Levels[l].Key) != labelOf(plan[0][0].Node, rules.Levels[l].Key) {
					t.Fatalf("units are in two domains of %s", one.Key)
				}
			}
		}
	})
	if placed == 0 || refused == 0 {
		t.Errorf("%d groups placed, %d refused: want both", placed, refused)
	}
}

// TestMembersJoinTheirGang: members that join go to nodes with room in the required
// domains of its gang wherever there is one, and Explain agrees.
func TestMembersJoinTheirGang(t *testing.T) {
	joined, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		state, free := drawRacks(t, 6)
		rules := &topology.Rules{Levels: []topology.Level{level("block", rapid.Bool().Draw(t, "block required")), level("rack", rapid.Bool().Draw(t, "rack required"))}}
		first := rapid.IntRange(0, len(free)-1).Draw(t, "first")
		at := state.Nodes()[first]
		u := place.Unit{
			Members: rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "members"), Request: resource.Request{GPUs: rapid.IntRange(1, 8).Draw(t, "gpus"), NUMA: resource.NUMANone}, Topology: rules,
			Joins: &place.Joining{Nodes: []resource.NodeID{at.ID, "gone"}, Before: 1},
		}
		may := func(i int) bool {
			n := state.Nodes()[i]
			for _, l := range rules.Levels {
				if l.Required && labelOf(n, l.Key) != labelOf(at, l.Key) {
					return false
				}
			}
			return free[i] >= u.Request.GPUs
		}
		room := 0
		for i := range free {
			if may(i) {
				room += free[i] / u.Request.GPUs
			}
		}
		want := room >= u.Members
		mark := state.Checkpoint()
		members, ok := place.Place(state, u)
		state.Rollback(mark)
		if ok != want {
			t.Fatalf("joined %t, want %t: %v free, beside node %d", ok, want, free, first)
		}
		if e := place.Explain(state, u); (e.Fit == u.Members) != ok {
			t.Fatalf("joined %t, and room for %d is explained: %+v", ok, e.Fit, e.Domain)
		}
		if !ok {
			refused++
			return
		}
		joined++
		for _, m := range members {
			if i := slices.Index(state.Nodes(), m.Node); !may(i) {
				t.Fatalf("it has joined on node %d, which is in another domain than node %d", i, first)
			}
		}
	})
	if joined == 0 || refused == 0 {
		t.Errorf("%d joined, %d refused: want both", joined, refused)
	}
}

// TestMembersJoinTheirSubgroup: a member joins the rack of its subgroup where that has room,
// though the rack is none of the required domains, and Explain agrees.
func TestMembersJoinTheirSubgroup(t *testing.T) {
	joined, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		state, free := drawRacks(t, 6)
		rules := &topology.Rules{Levels: []topology.Level{level("block", rapid.Bool().Draw(t, "block required")), level("rack", false)}, Subgroup: 2, SubgroupLevel: 1}
		nodes := state.Nodes()
		mate, own := nodes[rapid.IntRange(0, len(free)-1).Draw(t, "mate")], nodes[rapid.IntRange(0, len(free)-1).Draw(t, "own")]
		if rules.Levels[0].Required && labelOf(mate, "block") != labelOf(own, "block") {
			return
		}
		u := place.Unit{
			Members: 1, Request: resource.Request{GPUs: rapid.IntRange(1, 8).Draw(t, "gpus"), NUMA: resource.NUMANone}, Topology: rules,
			Joins: &place.Joining{Nodes: []resource.NodeID{mate.ID, own.ID, "gone"}, Before: 2, Own: []resource.NodeID{own.ID, "gone"}, Missing: 1},
		}
		may := func(i int) bool {
			return labelOf(nodes[i], "block") == labelOf(own, "block") && labelOf(nodes[i], "rack") == labelOf(own, "rack") && free[i] >= u.Request.GPUs
		}
		want := false
		for i := range nodes {
			want = want || may(i)
		}
		mark := state.Checkpoint()
		members, ok := place.Place(state, u)
		state.Rollback(mark)
		if ok != want || ok && !may(slices.Index(nodes, members[0].Node)) {
			t.Fatalf("joined %t, want %t: %v free, beside %s and, of its subgroup, %s", ok, want, free, mate.ID, own.ID)
		}
		if e := place.Explain(state, u); (e.Fit == 1) != ok {
			t.Fatalf("joined %t, and room for %d is explained: %+v", ok, e.Fit, e.Domain)
		}
		if ok {
			joined++
		} else {
			refused++
		}
	})
	if joined == 0 || refused == 0 {
		t.Errorf("%d joined, %d refused: want both", joined, refused)
	}
}

// A further subgroup goes to the rack with room for most of its members, however few hosts
// have that room.
func TestAFurtherSubgroupFindsRoomForAll(t *testing.T) {
	nodes := dgx(t, 6)
	for i, used := range []int{8, 8, 4, 8, 0, 8} { // of racks of two nodes
		if used > 0 {
			use(nodes[i], used)
		}
	}
	state := cluster.NewState(nodes...)
	racks(state, 2, 3)
	u := place.Unit{
		Members: 1, Request: resource.Request{GPUs: 4}, Topology: &topology.Rules{Levels: []topology.Level{level("rack", false)}, Subgroup: 2, SubgroupLevel: 0},
		Joins: &place.Joining{Nodes: []resource.NodeID{"node-00000"}, Before: 1, Missing: 2},
	}
	if members, ok := place.Place(state, u); !ok || labelOf(members[0].Node, "rack") != "2" {
		t.Errorf("%v, %t; want rack 2, which has room for both", members, ok)
	}
}

// The reason names the domain of the others.
func TestWhyAMemberCannotJoin(t *testing.T) {
	nodes := dgx(t, 4)
	use(nodes[0], 8)
	use(nodes[1], 8)
	state := cluster.NewState(nodes...)
	racks(state, 2, 1)
	u := place.Unit{
		Members: 1, Request: eightGPUs, Topology: &topology.Rules{Levels: []topology.Level{level("rack", true)}}, Joins: &place.Joining{Nodes: []resource.NodeID{"node-00000"}, Before: 1},
	}
	e := place.Explain(state, u)
	const want = "it has to run in the domain of rack of the other members of its gang, rack=0, and no node there has room"
	if e.Domain == nil || e.Domain.Detail != want || e.Fit != 0 {
		t.Errorf("room for %d, %+v; want %q", e.Fit, e.Domain, want)
	}
	u.Topology = &topology.Rules{Levels: []topology.Level{level("rack", false)}, Subgroup: 2, SubgroupLevel: 0}
	u.Joins.Own = u.Joins.Nodes
	if e := place.Explain(state, u); e.Domain == nil || e.Domain.Detail != strings.Replace(want, "gang", "subgroup", 1) {
		t.Errorf("%+v of a subgroup", e.Domain)
	}
	u.Topology = &topology.Rules{Levels: []topology.Level{level("rack", false)}}
	if e := place.Explain(state, u); e.Domain != nil || e.Fit != 1 {
		t.Errorf("room for %d, %+v where the level is preferred", e.Fit, e.Domain)
	}
}

// BenchmarkJoin places one more member of a gang of 512 among 10,000 hosts: of a gang
// without subgroups, of a subgroup that runs, and of a further one.
func BenchmarkJoin(b *testing.B) {
	for name, subgroup := range map[string][2]int{"gang": {0, 0}, "subgroup": {8, 7}, "further subgroup": {8, 0}} {
		b.Run(name, func(b *testing.B) { benchmarkJoin(b, subgroup[0], subgroup[1]) })
	}
}

// benchmarkJoin joins a gang of which 504 members have places, and so many of its subgroup.
func benchmarkJoin(b *testing.B, subgroup, own int) {
	state := cluster.NewState(dgx(b, 10_000)...)
	racks(state, 8, 80)
	rules := &topology.Rules{Levels: []topology.Level{level("block", true), level("rack", false)}, Subgroup: subgroup, SubgroupLevel: 1}
	mark := state.Checkpoint()
	first, ok := place.Place(state, place.Unit{Members: 504, Request: eightGPUs, Topology: rules})
	if !ok {
		b.Fatal("no place")
	}
	state.Keep(mark)
	u := place.Unit{Members: 1, Request: eightGPUs, Topology: rules, Joins: &place.Joining{Before: 504}}
	for _, m := range first {
		u.Joins.Nodes = append(u.Joins.Nodes, m.Node.ID)
	}
	for _, n := range state.Nodes()[504:][:own] {
		u.Joins.Nodes, u.Joins.Own = append(u.Joins.Nodes, n.ID), append(u.Joins.Own, n.ID)
	}
	u.Joins.Missing = subgroup - own
	b.ReportAllocs()
	for b.Loop() {
		mark := state.Checkpoint()
		members, ok := place.Place(state, u)
		if !ok || labelOf(members[0].Node, "block") != labelOf(first[0].Node, "block") {
			b.Fatal(fmt.Sprint("a place ", ok))
		}
		state.Rollback(mark)
	}
}
