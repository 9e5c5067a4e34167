package place_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// drawNodes draws a small cluster of different hosts, partly used.
func drawNodes(t *rapid.T) []*cluster.Node {
	var nodes []*cluster.Node
	for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
		profile, err := fake.Lookup(rapid.SampledFrom(fake.Names()).Draw(t, "profile"))
		if err != nil {
			t.Fatal(err)
		}
		id := string(rune('a' + i))
		topology := profile.Topology()
		if pages := rapid.SampledFrom([]int64{0, 0, 1, 4}).Draw(t, "huge pages"); pages > 0 {
			topology.Nodes[len(topology.Nodes)-1].Hugepages = map[int]int64{2048: 100 * pages, 1 << 20: pages}
		}
		host, err := fit.NewHost(topology, profile.Inventory(id), fit.Reserved{})
		if err != nil {
			t.Fatal(err)
		}
		n := &cluster.Node{
			ID: resource.NodeID(id), Host: host, Free: host.NewFree(), Ready: rapid.IntRange(0, 7).Draw(t, "ready") > 0,
			Unschedulable: rapid.IntRange(0, 7).Draw(t, "cordoned") == 0,
		}
		labels := map[string]string{"zone": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "zone")}
		var taints []constraint.Taint
		if rapid.IntRange(0, 4).Draw(t, "tainted") == 0 {
			taints = []constraint.Taint{{Key: "k", Effect: constraint.NoSchedule}}
		}
		mark([]*cluster.Node{n}, labels, taints...)
		for range rapid.IntRange(0, 3).Draw(t, "used") {
			var a resource.Assignment
			if host.Assign(n.Free, drawRequest(t), &a) {
				if err := host.Take(n.Free, a); err != nil {
					t.Fatal(err)
				}
			}
		}
		n.Free.Unhealthy |= uint64(rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "unhealthy"))
		n.Refresh()
		nodes = append(nodes, n)
	}
	return nodes
}

func drawRequest(t *rapid.T) resource.Request {
	r := resource.Request{
		CPU:    resource.Millicores(rapid.SampledFrom([]int{500, 1000, 8000, 30_000}).Draw(t, "cpu")),
		Memory: resource.Bytes(rapid.SampledFrom([]int64{0, 1 << 30, 100 << 30}).Draw(t, "memory")),
		NUMA:   resource.NUMAPolicy(rapid.IntRange(0, 3).Draw(t, "numa")),
	}
	if rapid.IntRange(0, 2).Draw(t, "whole cores") == 0 {
		r.CPU, r.Cores = 0, rapid.SampledFrom([]int{1, 8, 30}).Draw(t, "cores")
	}
	if rapid.IntRange(0, 3).Draw(t, "huge") == 0 {
		r.HugepageSize = rapid.SampledFrom([]resource.Bytes{2 << 20, 1 << 30}).Draw(t, "page size")
		r.Hugepages = r.HugepageSize * resource.Bytes(rapid.SampledFrom([]int64{1, 2, 60}).Draw(t, "pages"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "devices") {
	case 3:
		r.MIG, r.MIGProfile = rapid.IntRange(1, 2).Draw(t, "instances"), rapid.SampledFrom([]string{"1g.10gb", "2g.20gb", "3g.40gb"}).Draw(t, "profile")
	case 0:
		r.GPUShare = resource.Milli(rapid.SampledFrom([]int{250, 500, 900}).Draw(t, "share"))
	case 1:
		r.GPUs = rapid.IntRange(1, 8).Draw(t, "gpus")
		r.Link = resource.LinkRequirement(rapid.IntRange(0, 2).Draw(t, "link"))
	}
	return r
}

func drawUnit(t *rapid.T) place.Unit {
	var c constraint.Spec
	if rapid.IntRange(0, 2).Draw(t, "selects") == 0 {
		c.NodeSelector = map[string]string{"zone": "x"}
	}
	if rapid.IntRange(0, 2).Draw(t, "prefers") == 0 {
		c.Preferred = []constraint.Preference{{Weight: 5, Term: expressions("zone", "In", "y")}}
	}
	if rapid.Bool().Draw(t, "tolerates") {
		c.Tolerations = []constraint.Toleration{{AnyValue: true}}
	}
	return place.Unit{Members: rapid.IntRange(1, 8).Draw(t, "members"), Request: drawRequest(t), Constraints: constraint.Compile(c)}
}

// capacity is the oracle: members fit on a node until its fit says no, and
// nodes do not depend on each other.
func capacity(t *rapid.T, nodes []*cluster.Node, u place.Unit) int {
	sum := 0
	for _, n := range nodes {
		if !allowed(n, u) {
			continue
		}
		free := n.Free.Clone()
		for range u.Members {
			var a resource.Assignment
			if !n.Host.Assign(free, u.Request, &a) {
				break
			}
			if err := n.Host.Take(free, a); err != nil {
				t.Fatal(err)
			}
			sum++
		}
	}
	return sum
}

func allowed(n *cluster.Node, u place.Unit) bool {
	return n.Ready && !n.Unschedulable && u.Constraints.Refusal(n.Labels) == nil
}

func TestPlaceAgreesWithTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, u := drawNodes(t), drawUnit(t)
		before := frees(nodes)
		fits := capacity(t, nodes, u)
		state := cluster.NewState(nodes...)
		mark := state.Checkpoint()
		members, ok := place.Place(state, u)
		if ok != (fits >= u.Members) {
			t.Fatalf("placed: %t; %d of %d members fit", ok, fits, u.Members)
		}
		after := frees(nodes)
		for i, m := range members { // the plan can be taken, in any order, from what was free
			at := int(m.Node.ID[0] - 'a')
			if m.Index != i || nodes[at] != m.Node || !allowed(m.Node, u) {
				t.Fatalf("member %d of index %d goes to %s, allowed: %t", i, m.Index, m.Node.ID, allowed(m.Node, u))
			}
			if err := m.Node.Host.Take(before[at], m.Assignment); err != nil {
				t.Fatalf("member %d: %v", i, err)
			}
		}
		if diff := sameFree(nodes, before); diff != "" {
			t.Fatalf("taken is not what was planned: %s", diff)
		}
		for _, n := range nodes {
			if err := n.Host.Check(n.Free); err != nil {
				t.Fatal(err)
			}
			fresh := *n
			fresh.Refresh()
			if diff := cmp.Diff(aggregates(&fresh), aggregates(n)); diff != "" {
				t.Fatalf("aggregates of %s (-want +got):\n%s", n.ID, diff)
			}
		}

		state.Rollback(mark)
		place.Place(state, u)
		if diff := sameFree(nodes, after); diff != "" {
			t.Fatalf("the same question has another answer: %s", diff)
		}
	})
}

func TestRollbackAndExplainChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, u := drawNodes(t), drawUnit(t)
		state, before := cluster.NewState(nodes...), frees(nodes)
		want := min(capacity(t, nodes, u), u.Members)
		if e := place.Explain(state, u); e.Fit != want || len(e.Nodes) != len(nodes) {
			t.Fatalf("explained: %d fit over %d nodes, want %d over %d", e.Fit, len(e.Nodes), want, len(nodes))
		}
		mark := state.Checkpoint()
		place.Place(state, u)
		state.Rollback(mark)
		if diff := sameFree(nodes, before); diff != "" {
			t.Fatalf("changed %s", diff)
		}
	})
}

// aggregates is all that Refresh computes.
func aggregates(n *cluster.Node) []int64 {
	return []int64{
		int64(n.FreeCPU), int64(n.FreeCores), int64(n.FreeMemory), int64(n.WholeGPUs), int64(n.FreeGPU), int64(n.LargestGPU), int64(n.FreeMIG),
	}
}
