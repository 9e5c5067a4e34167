package place_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// level is a level of domains in tests.
func level(key string, required bool) topology.Level {
	return topology.Level{Key: key, Required: required}
}

// racks labels nodes with racks of so many nodes, and blocks of so many racks.
func racks(state *cluster.State, nodes, perBlock int) {
	for i, n := range state.Nodes() {
		rack := i / nodes
		state.Relabel(n, map[string]string{"rack": fmt.Sprint(rack), "block": fmt.Sprint(rack / perBlock)}, nil)
	}
}

// TestGangsInDomains compares the search, which starts from sums, with the rules over
// the exact room of each node.
func TestGangsInDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(dgxOf(t, rapid.IntRange(1, 8).Draw(t, "nodes"))...)
		racks(state, rapid.IntRange(1, 3).Draw(t, "nodes of a rack"), rapid.IntRange(1, 3).Draw(t, "racks of a block"))
		for _, n := range state.Nodes() {
			if gpus := rapid.IntRange(0, 8).Draw(t, "used"); gpus > 0 {
				one := place.Unit{Members: gpus, Request: resource.Request{GPUs: 1}, Within: map[resource.NodeID]bool{n.ID: true}, Topology: &topology.Rules{}}
				if _, ok := place.Place(state, one); !ok {
					t.Fatalf("%s is full too early", n.ID)
				}
			}
		}
		u := place.Unit{
			Members: rapid.IntRange(1, 6).Draw(t, "members"), Request: resource.Request{GPUs: rapid.IntRange(1, 4).Draw(t, "gpus"), NUMA: rapid.SampledFrom([]resource.NUMAPolicy{resource.NUMABestEffort, resource.NUMASingleNode}).Draw(t, "numa")},
			Topology: &topology.Rules{Levels: []topology.Level{level("block", rapid.Bool().Draw(t, "block required")), level("rack", rapid.Bool().Draw(t, "rack required"))}},
		}
		if rapid.Bool().Draw(t, "subgroups") {
			u.Topology.Subgroup, u.Topology.SubgroupLevel = 2, 1
			u.Members = max(2, u.Members/2*2)
		}
		_, want := u.Topology.Plan(exactly(t, state, &u), u.Members)
		mark := state.Checkpoint()
		members, ok := place.Place(state, u)
		state.Rollback(mark)
		if ok != want {
			t.Fatalf("a place %t, want %t", ok, want)
		}
		for i, m := range members {
			if m.Index != i {
				t.Fatalf("member %d has rank %d", i, m.Index)
			}
			for l, one := range u.Topology.Levels {
				first := members[0]
				if u.Topology.Subgroup > 0 && l == u.Topology.SubgroupLevel && !one.Required {
					first = members[i/2*2]
				}
				if (one.Required || l == u.Topology.SubgroupLevel && u.Topology.Subgroup > 0) && labelOf(m.Node, one.Key) != labelOf(first.Node, one.Key) {
					t.Fatalf("member %d is in %s %s, another in %s", i, one.Key, labelOf(m.Node, one.Key), labelOf(first.Node, one.Key))
				}
			}
		}
		if e := place.Explain(state, u); (e.Fit >= u.Members) != ok {
			t.Fatalf("a place %t, and room for %d of %d is explained: %+v", ok, e.Fit, u.Members, e.Domain)
		}
	})
}

func labelOf(n *cluster.Node, key string) string {
	value, _ := n.Labels.Get(key)
	return value
}

// dgxOf is dgx for a property.
func dgxOf(t *rapid.T, n int) []*cluster.Node {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]*cluster.Node, n)
	for i := range nodes {
		id := fmt.Sprintf("node-%05d", i)
		host, err := fit.NewHost(profile.Topology(), profile.Inventory(id), fit.Reserved{})
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = &cluster.Node{ID: resource.NodeID(id), Ready: true, Host: host, Free: host.NewFree()}
		nodes[i].Refresh()
	}
	return nodes
}

// exactly is the hosts of the nodes with the members that each holds.
func exactly(t *rapid.T, state *cluster.State, u *place.Unit) (hosts []topology.Host) {
	for _, n := range state.Nodes() {
		h := topology.Host{}
		for _, l := range u.Topology.Levels {
			h.Domains = append(h.Domains, state.Topology(l.Key).Of(n))
		}
		mark := state.Checkpoint()
		for h.Room < u.Members {
			var a resource.Assignment
			if !state.Assign(n, &u.Request, &a) {
				break
			}
			if err := state.Take(n, a); err != nil {
				t.Fatal(err)
			}
			h.Room++
		}
		state.Rollback(mark)
		hosts = append(hosts, h)
	}
	return hosts
}

// Nodes that have failed the unit, and nodes in doubt, are the last choice, even where
// another rack has to be taken.
func TestDoubtfulNodesAreTheLastChoiceInDomains(t *testing.T) {
	gang := place.Unit{Members: 2, Request: eightGPUs, Topology: &topology.Rules{Levels: []topology.Level{level("rack", true)}}}
	for name, c := range map[string]struct {
		prepare func(*cluster.State, *place.Unit)
		want    string
	}{
		"the first rack":             {func(*cluster.State, *place.Unit) {}, "node-00000 node-00001"},
		"a node has failed the unit": {func(_ *cluster.State, u *place.Unit) { u.Avoid = map[resource.NodeID]int{"node-00001": 1} }, "node-00002 node-00003"},
		"a node is suspected dead":   {func(s *cluster.State, _ *place.Unit) { s.SetSuspect(s.Nodes()[0], true) }, "node-00002 node-00003"},
		"a node of each rack is so": {func(_ *cluster.State, u *place.Unit) {
			u.Avoid = map[resource.NodeID]int{"node-00001": 1, "node-00002": 1}
		}, "node-00000 node-00001"},
		"the nodes of one rack alone": {func(_ *cluster.State, u *place.Unit) {
			u.Within = map[resource.NodeID]bool{"node-00002": true, "node-00003": true}
		}, "node-00002 node-00003"},
		"a node of each rack is left": {func(_ *cluster.State, u *place.Unit) {
			u.Within = map[resource.NodeID]bool{"node-00001": true, "node-00002": true}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state := cluster.NewState(dgx(t, 4)...)
			racks(state, 2, 1)
			u := gang
			c.prepare(state, &u)
			members, _ := place.Place(state, u)
			got := ""
			for i, m := range members {
				if i > 0 {
					got += " "
				}
				got += string(m.Node.ID)
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The reason names the best domain.
func TestWhyADomainHasNoRoom(t *testing.T) {
	for name, c := range map[string]struct {
		rules topology.Rules
		used  int // GPUs of each node
		want  string
	}{
		"no rack has room":             {topology.Rules{Levels: []topology.Level{level("rack", true)}}, 0, "all 3 members have to run in one domain of rack, and the best one, rack=0, has room for 2"},
		"subgroups do not fit":         {topology.Rules{Levels: []topology.Level{level("rack", false)}, Subgroup: 3}, 0, "the domains have room for 0 of 3 members, in subgroups of 3, each in one domain of rack"},
		"a named subgroup has no room": {topology.Rules{Levels: []topology.Level{level("rack", true)}, Subgroup: 1, Name: "pair-1"}, 0, `all 3 members have to run in one domain of rack, and the best one, rack=0, has room for 2, those of subgroup "pair-1" in one domain of rack`},
		"a label that no node has":     {topology.Rules{Levels: []topology.Level{level("zone", true)}}, 0, "all 3 members have to run in one domain of zone, and no node of such a domain has room for one"},
		"room":                         {topology.Rules{Levels: []topology.Level{level("rack", false)}}, 0, ""},
		"the nodes together are full":  {topology.Rules{Levels: []topology.Level{level("rack", true)}}, 8, ""},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := dgx(t, 4)
			for _, n := range nodes {
				use(n, c.used)
			}
			state := cluster.NewState(nodes...)
			racks(state, 2, 1)
			e := place.Explain(state, place.Unit{Members: 3, Request: eightGPUs, Topology: &c.rules})
			got := ""
			if e.Domain != nil {
				got = e.Domain.Detail
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// BenchmarkDomains places 512 members of 8 GPUs in one block of 640 hosts, subgroups of 8
// by rack, among 10,000 hosts. The blocks before the last have room for 511.
func BenchmarkDomains(b *testing.B) {
	const hosts, block, rack = 10_000, 640, 8
	nodes := dgx(b, hosts)
	for i, n := range nodes {
		if last := (hosts - 1) / block; i/block < last-1 && i%block%(block/129) == 0 || i/block == last {
			use(n, 8)
		}
	}
	state := cluster.NewState(nodes...)
	racks(state, rack, block/rack)
	u := place.Unit{Members: 512, Request: eightGPUs, Topology: &topology.Rules{
		Levels: []topology.Level{level("block", true), level("rack", false)}, Subgroup: 8, SubgroupLevel: 1,
	}}
	b.ReportAllocs()
	for b.Loop() {
		mark := state.Checkpoint()
		members, ok := place.Place(state, u)
		if !ok || !slices.IsSortedFunc(members, func(a, b place.Choice) int { return a.Index - b.Index }) || labelOf(members[0].Node, "block") != "14" {
			b.Fatalf("a place %t", ok)
		}
		state.Rollback(mark)
	}
}
