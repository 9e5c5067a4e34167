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

// partOf is an allocation of a group with blocks and racks: a member with so many GPUs, in
// the subgroup of a name, "" for none.
func partOf(blockRequired bool, name string, subgroupLevel, gpus int) place.Unit {
	rules := &topology.Rules{Levels: []topology.Level{level("block", blockRequired), level("rack", false)}, Name: name, SubgroupLevel: subgroupLevel}
	if name != "" {
		rules.Subgroup = 1
	}
	return place.Unit{Members: 1, Request: resource.Request{GPUs: gpus, CPU: 1000, NUMA: resource.NUMANone}, Topology: rules}
}

// hasPlaces says by trying all nodes for each part whether all have a place.
func hasPlaces(state *cluster.State, free []int, parts []place.Unit, on []*cluster.Node) bool {
	at := len(on)
	if at == len(parts) {
		return true
	}
	u := &parts[at]
	for i, n := range state.Nodes() {
		if free[i] < u.Request.GPUs || !maySit(parts, on, u, n) {
			continue
		}
		free[i] -= u.Request.GPUs
		ok := hasPlaces(state, free, parts, append(on, n))
		if free[i] += u.Request.GPUs; ok {
			return true
		}
	}
	return false
}

// maySit says whether a part may be on a node beside those before it.
func maySit(parts []place.Unit, on []*cluster.Node, u *place.Unit, n *cluster.Node) bool {
	for i, other := range on {
		if u.Topology.Levels[0].Required && labelOf(other, "block") != labelOf(n, "block") {
			return false
		}
		if u.Topology.Name == "" || parts[i].Topology.Name != u.Topology.Name {
			continue
		}
		for _, l := range u.Topology.Levels[:u.Topology.SubgroupLevel+1] {
			if labelOf(other, l.Key) != labelOf(n, l.Key) {
				return false
			}
		}
	}
	return true
}

// TestDomainsOfNamedSubgroups: which domains the subgroups of a group have.
func TestDomainsOfNamedSubgroups(t *testing.T) {
	for name, c := range map[string]struct {
		racks [][]int // free GPUs of the nodes of each rack
		parts []place.Unit
		want  string // node of each part, "" for no place
	}{
		"all in one rack where one has room":                  {[][]int{{8}, {8, 8}}, []place.Unit{partOf(false, "a", 1, 6), partOf(false, "b", 1, 6)}, "node-00001 node-00002"},
		"each pair in a rack":                                 {[][]int{{8}, {8}}, []place.Unit{partOf(false, "a", 1, 5), partOf(false, "b", 1, 6), partOf(false, "a", 1, 3), partOf(false, "b", 1, 2)}, "node-00000 node-00001 node-00000 node-00001"},
		"no rack for the second pair":                         {[][]int{{8}, {4}, {4}}, []place.Unit{partOf(false, "a", 1, 5), partOf(false, "b", 1, 6), partOf(false, "a", 1, 3), partOf(false, "b", 1, 2)}, ""},
		"a subgroup leaves its first rack to the other":       {[][]int{{8}, {4, 4, 1}}, []place.Unit{partOf(false, "a", 1, 4), partOf(false, "a", 1, 4), partOf(false, "b", 1, 8)}, "node-00001 node-00002 node-00000"},
		"a subgroup leaves its first rack to a part without":  {[][]int{{8}, {4, 4, 1}}, []place.Unit{partOf(false, "a", 1, 4), partOf(false, "a", 1, 4), partOf(false, "", 1, 8)}, "node-00001 node-00002 node-00000"},
		"parts of a rack come before those of a block":        {[][]int{{7}, {5}}, []place.Unit{partOf(false, "a", 1, 1), partOf(false, "a", 1, 1), partOf(false, "a", 1, 4), partOf(false, "b", 0, 2)}, "node-00000 node-00000 node-00000 node-00001"},
		"within one block, where the group has to run in one": {[][]int{{8}, {4}, {8}, {8}}, []place.Unit{partOf(true, "a", 1, 8), partOf(true, "b", 1, 8)}, "node-00002 node-00003"},
		"a subgroup by block in the one that has room":        {[][]int{{8}, {4}, {8}, {8}}, []place.Unit{partOf(false, "a", 0, 8), partOf(false, "a", 0, 8)}, "node-00002 node-00003"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := dgx(t, len(slices.Concat(c.racks...)))
			state := cluster.NewState(nodes...)
			at := 0
			for rack, free := range c.racks {
				for _, gpus := range free {
					n := state.Nodes()[at]
					at++
					state.Relabel(n, map[string]string{"rack": fmt.Sprint(rack), "block": fmt.Sprint(rack / 2)}, nil)
					one := place.Unit{Members: 8 - gpus, Request: resource.Request{GPUs: 1}, Within: map[resource.NodeID]bool{n.ID: true}, Topology: &topology.Rules{}}
					if gpus < 8 {
						if _, ok := place.Place(state, one); !ok {
							t.Fatalf("%s is full too early", n.ID)
						}
					}
				}
			}
			plan, ok := place.Together(state, c.parts)
			if got := joinNodes(slices.Concat(plan...)); got != c.want || ok != (c.want != "") {
				t.Errorf("on %q, want %q", got, c.want)
			}
		})
	}
}

// TestNamedSubgroups: the allocations of a subgroup go to one domain of its level, within the
// domain of the group. Where all have a subgroup by rack, they have places wherever trying all
// nodes finds some; of the other groups few miss their places.
func TestNamedSubgroups(t *testing.T) {
	placed, refused, missed := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(dgxOf(t, rapid.IntRange(2, 6).Draw(t, "nodes"))...)
		racks(state, rapid.IntRange(1, 2).Draw(t, "nodes of a rack"), rapid.IntRange(1, 3).Draw(t, "racks of a block"))
		free := drawUsed(t, state)
		required, named := rapid.Bool().Draw(t, "block required"), 0
		levels := map[string]int{"": 1, "a": rapid.IntRange(0, 1).Draw(t, "level of a"), "b": 1, "c": 1}
		var parts []place.Unit
		for range rapid.IntRange(2, 5).Draw(t, "parts") {
			name := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "subgroup")
			parts = append(parts, partOf(required, name, levels[name], rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpus")))
			if name != "" && levels[name] == 1 {
				named++
			}
		}
		want := hasPlaces(state, free, parts, nil)
		before, mark := wholeGPUs(state), state.Checkpoint()
		plan, ok := place.Together(state, parts)
		if !ok && !slices.Equal(before, wholeGPUs(state)) {
			t.Fatalf("refused, and %v is free of %v", wholeGPUs(state), before)
		}
		state.Rollback(mark)
		if e := place.Explain(state, asSets(parts)); (e.Fit >= e.Members) != ok {
			t.Fatalf("%s on nodes with %v free: placed %t, and room for %d of %d is explained", textOf(parts), free, ok, e.Fit, e.Members)
		}
		if want && !ok && named < len(parts) {
			missed++
			return
		}
		if ok != want {
			t.Fatalf("%s on nodes with %v free: placed %t, the oracle says %t", textOf(parts), free, ok, want)
		}
		if !ok {
			refused++
			return
		}
		placed++
		var on []*cluster.Node
		for i := range parts {
			if len(plan[i]) != 1 || !maySit(parts, on, &parts[i], plan[i][0].Node) {
				t.Fatalf("%s: part %d is on %v beside %v", textOf(parts), i, plan[i], on)
			}
			on = append(on, plan[i][0].Node)
		}
	})
	t.Logf("%d groups placed, %d refused, %d missed", placed, refused, missed)
	if placed == 0 || refused == 0 || missed > 2+placed/50 {
		t.Errorf("%d groups placed, %d refused, %d missed: want many, and few missed", placed, refused, missed)
	}
}

// asSets are parts as an explanation has them.
func asSets(parts []place.Unit) place.Unit {
	u := parts[0]
	u.Members = len(parts)
	for _, p := range parts {
		u.Sets = append(u.Sets, place.Set{Members: 1, Request: p.Request, Topology: p.Topology.Whole()})
	}
	return u
}

func textOf(parts []place.Unit) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = fmt.Sprintf("%d GPUs of %q by level %d", p.Request.GPUs, p.Topology.Name, p.Topology.SubgroupLevel)
	}
	return strings.Join(texts, ", ")
}
