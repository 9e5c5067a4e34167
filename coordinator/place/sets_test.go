package place_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// drawSets draws members that differ: sets of one of the sizes 1, 2, 4 and 8.
func drawSets(t *rapid.T, most int) place.Unit {
	u := place.Unit{}
	for range rapid.IntRange(2, most).Draw(t, "sets") {
		s := place.Set{Members: rapid.IntRange(1, 3).Draw(t, "members"), Request: resource.Request{GPUs: rapid.SampledFrom([]int{0, 1, 2, 4, 8}).Draw(t, "gpus"), CPU: 1000, NUMA: resource.NUMANone}}
		u.Sets, u.Members = append(u.Sets, s), u.Members+s.Members
	}
	u.Request = u.Sets[0].Request
	return u
}

// wantsOf are the GPUs of each member.
func wantsOf(u *place.Unit) []int {
	wants := make([]int, u.Members)
	for i := range wants {
		wants[i] = u.RequestOf(i).GPUs
	}
	return wants
}

// drawUsed has other work hold GPUs, and returns those that are free by node.
func drawUsed(t *rapid.T, state *cluster.State) []int {
	var free []int
	for _, n := range state.Nodes() {
		used := rapid.IntRange(0, 8).Draw(t, "used")
		var a resource.Assignment
		if used > 0 && n.Host.Assign(n.Free, resource.Request{GPUs: used, CPU: 1000}, &a) {
			if err := state.Take(n, a); err != nil {
				t.Fatal(err)
			}
		}
		free = append(free, 8-used)
	}
	return free
}

// TestMembersThatDifferAgreeWithBruteForce: sets of members of which each is as large as a
// number of the smaller ones are placed wherever they can be, all or none, and each member
// gets what its own set asks for.
func TestMembersThatDifferAgreeWithBruteForce(t *testing.T) {
	placed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(dgxOf(t, rapid.IntRange(1, 3).Draw(t, "nodes"))...)
		free, u := drawUsed(t, state), drawSets(t, 3)
		before, mark := wholeGPUs(state), state.Checkpoint()
		members, ok := place.Place(state, u)
		checkMembers(t, &u, members, ok)
		if ok {
			placed++
		} else if refused++; !slices.Equal(before, wholeGPUs(state)) {
			t.Fatalf("refused, and %v is free of %v", wholeGPUs(state), before)
		}
		state.Rollback(mark)
		wants := slices.Sorted(slices.Values(wantsOf(&u)))
		slices.Reverse(wants)
		if want := packs(free, wants); ok != want {
			t.Fatalf("members of %v GPUs on nodes with %v free: placed %t, the oracle says %t", wants, free, ok, want)
		}
	})
	if placed == 0 || refused == 0 {
		t.Errorf("%d units placed, %d refused: want both", placed, refused)
	}
}

// checkMembers checks that a plan has each member once, in order, with its own request.
func checkMembers(t *rapid.T, u *place.Unit, members []place.Choice, ok bool) {
	if !ok {
		if members != nil {
			t.Fatalf("refused, with the members %v", members)
		}
		return
	}
	if len(members) != u.Members {
		t.Fatalf("%d members are placed, want %d", len(members), u.Members)
	}
	for i, m := range members {
		if want := u.RequestOf(i).GPUs; m.Index != i || len(m.Assignment.GPUs) != want {
			t.Fatalf("place %d is of member %d with %d GPUs, want %d", i, m.Index, len(m.Assignment.GPUs), want)
		}
	}
}

// TestSetsKeepToTheirNodes: of two sets that may each run on some nodes alone, a place is
// found where the smaller one has to come first.
func TestSetsKeepToTheirNodes(t *testing.T) {
	zone := func(name string) *constraint.Set {
		return constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"zone": name}})
	}
	whole := func(gpus int) resource.Request { return resource.Request{GPUs: gpus, CPU: 1000} }
	for name, c := range map[string]struct {
		sets []place.Set
		want string
	}{
		"the larger set leaves the node to the smaller": {[]place.Set{{Members: 1, Request: whole(1), Constraints: zone("a")}, {Members: 1, Request: whole(8), Constraints: nil}}, "node-00000 node-00001"},
		"both need the same node":                       {[]place.Set{{Members: 1, Request: whole(1), Constraints: zone("a")}, {Members: 1, Request: whole(8), Constraints: zone("a")}}, ""},
		"no node has the label of one set":              {[]place.Set{{Members: 1, Request: whole(8), Constraints: nil}, {Members: 1, Request: whole(1), Constraints: zone("c")}}, ""},
		"each to its zone":                              {[]place.Set{{Members: 2, Request: whole(4), Constraints: zone("b")}, {Members: 1, Request: whole(8), Constraints: zone("a")}}, "node-00001 node-00001 node-00000"},
	} {
		t.Run(name, func(t *testing.T) {
			state := cluster.NewState(dgx(t, 2)...)
			state.Relabel(state.Nodes()[0], map[string]string{"zone": "a"}, nil)
			state.Relabel(state.Nodes()[1], map[string]string{"zone": "b"}, nil)
			u := place.Unit{Sets: c.sets, Request: c.sets[0].Request, Constraints: c.sets[0].Constraints}
			for _, s := range c.sets {
				u.Members += s.Members
			}
			members, _ := place.Place(state, u)
			if got := joinNodes(members); got != c.want {
				t.Errorf("on %q, want %q", got, c.want)
			}
		})
	}
}

func joinNodes(members []place.Choice) string {
	text := ""
	for i, m := range members {
		if i > 0 {
			text += " "
		}
		text += string(m.Node.ID)
	}
	return text
}

// TestSetsShareADomain: under a required level all sets are in one domain, wherever one
// has room for all, and a preferred level gathers them where it can.
func TestSetsShareADomain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(dgxOf(t, rapid.IntRange(2, 6).Draw(t, "nodes"))...)
		perRack := rapid.IntRange(1, 2).Draw(t, "nodes of a rack")
		racks(state, perRack, 2)
		free, u := drawUsed(t, state), drawSets(t, 2)
		required := rapid.Bool().Draw(t, "required")
		u.Topology = &topology.Rules{Levels: []topology.Level{level("rack", required)}}
		for _, n := range state.Nodes() {
			if rapid.IntRange(0, 4).Draw(t, "suspect") == 0 {
				state.SetSuspect(n, true)
			}
		}
		mark := state.Checkpoint()
		members, ok := place.Place(state, u)
		state.Rollback(mark)
		checkMembers(t, &u, members, ok)
		wants := slices.Sorted(slices.Values(wantsOf(&u)))
		slices.Reverse(wants)
		one, sure := false, false // a rack has room, with nodes in no doubt
		for from := 0; from < len(free); from += perRack {
			to := min(from+perRack, len(free))
			one = one || packs(slices.Clone(free[from:to]), wants)
			var certain []int
			for i := from; i < to; i++ {
				if !state.Nodes()[i].Suspect {
					certain = append(certain, free[i])
				}
			}
			sure = sure || packs(certain, wants)
		}
		if required && ok != one {
			t.Fatalf("members of %v GPUs in racks of %d nodes with %v free: placed %t, want %t", wants, perRack, free, ok, one)
		}
		if !required && ok != packs(slices.Clone(free), wants) {
			t.Fatalf("members of %v GPUs on nodes with %v free: placed %t", wants, free, ok)
		}
		together, doubt := map[string]bool{}, false
		for _, m := range members {
			together[labelOf(m.Node, "rack")] = true
			doubt = doubt || m.Node.Suspect
		}
		if ok && len(together) > 1 && (required || sure) {
			t.Fatalf("members of %v GPUs are in %d racks of %d nodes with %v free", wants, len(together), perRack, free)
		}
		if doubt && sure {
			t.Fatalf("a member is on a suspect node, and a rack without has room")
		}
		if e := place.Explain(state, u); (e.Fit >= e.Members) != ok || e.Members != u.Sets[e.Set].Members {
			t.Fatalf("a place %t, and room for %d of %d members of set %d is explained", ok, e.Fit, e.Members, e.Set)
		}
	})
}

// TestTheOrderOfNodesChangesNoPlaceInDomains: members that differ go to the same nodes of the
// same domains, in whatever order the nodes came and got their labels, and whatever the names
// of the domains are.
func TestTheOrderOfNodesChangesNoPlaceInDomains(t *testing.T) {
	placed := 0
	rapid.Check(t, func(t *rapid.T) {
		u := drawSets(t, 3)
		u.Topology = &topology.Rules{Levels: []topology.Level{level("block", rapid.Bool().Draw(t, "block required")), level("rack", rapid.Bool().Draw(t, "rack required"))}}
		n := rapid.IntRange(1, 6).Draw(t, "nodes")
		var used, racks []int
		for range n {
			used, racks = append(used, rapid.IntRange(0, 8).Draw(t, "used")), append(racks, rapid.IntRange(0, 3).Draw(t, "rack"))
		}
		plan := func(order []int, name func(domain int) string) (nodes []resource.NodeID) {
			state, all := cluster.NewState(), dgxOf(t, n)
			for _, i := range order {
				state.Insert(all[i])
			}
			for _, i := range order {
				state.Relabel(all[i], map[string]string{"rack": name(racks[i]), "block": name(10 + racks[i]/2)}, nil)
				var a resource.Assignment
				if used[i] > 0 && all[i].Host.Assign(all[i].Free, resource.Request{GPUs: used[i], CPU: 1000}, &a) {
					if err := state.Take(all[i], a); err != nil {
						t.Fatal(err)
					}
				}
			}
			members, _ := place.Place(state, u)
			for _, m := range members {
				nodes = append(nodes, m.Node.ID)
			}
			return nodes
		}
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		want := plan(order, func(domain int) string { return string(rune('a' + domain)) })
		got := plan(rapid.Permutation(order).Draw(t, "order"), func(domain int) string { return string(rune('z' - domain)) })
		if !slices.Equal(got, want) {
			t.Fatalf("members go to %v, and in another order to %v", want, got)
		}
		placed += len(want)
	})
	if placed == 0 {
		t.Error("no unit was placed")
	}
}
