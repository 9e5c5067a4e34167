package preempt_test

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

const gib = resource.Bytes(1) << 30

// hostsOf makes hosts of one profile, whose tables are shared.
func hostsOf(tb interface{ Fatal(...any) }, profile string, n int) []*cluster.Node {
	p, err := fake.Lookup(profile)
	if err != nil {
		tb.Fatal(err)
	}
	topology := p.Topology()
	var like *fit.Host
	nodes := make([]*cluster.Node, n)
	for i := range nodes {
		id := fmt.Sprintf("node-%04d", i)
		host, err := fit.NewHostLike(like, topology, p.Inventory(id), fit.Reserved{})
		if err != nil {
			tb.Fatal(err)
		}
		like = host
		nodes[i] = &cluster.Node{ID: resource.NodeID(id), Ready: true, Host: host, Free: host.NewFree()}
		nodes[i].Refresh()
	}
	return nodes
}

// start lets a unit hold what place gives it.
func start(nodes []*cluster.Node, name string, priority int32, started int64, members int, r resource.Request) (preempt.Holder, bool) {
	placed, ok := place.Place(cluster.NewState(nodes...), place.Unit{Members: members, Request: r})
	h := preempt.Holder{Unit: name, Priority: priority, Started: started}
	for _, m := range placed {
		h.Parts = append(h.Parts, preempt.Part{Node: m.Node.ID, Assignment: m.Assignment.Clone()})
	}
	return h, ok
}

// world is a drawn cluster, who holds it, and who wants room.
type world struct {
	nodes   []*cluster.Node
	holders []preempt.Holder
	unit    place.Unit
}

// priority is the preemptor's; holders' are about it.
const priority = 3

// taint keeps every unit of these tests off the node.
func taint(n *cluster.Node) {
	n.Labels = new(constraint.Table).Intern(nil, []constraint.Taint{{Key: "k", Effect: constraint.NoSchedule}})
}

// tainted: no other labels are given in these tests.
func tainted(n *cluster.Node) bool { return n.Labels != nil }

func drawWorld(t *rapid.T, holders, members int) world {
	var w world
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		n := hostsOf(t, rapid.SampledFrom([]string{"gpu2", "gpu2", "asym-3131", "dgx-a100", "pcie-8x2"}).Draw(t, "profile"), 1)[0]
		n.ID = resource.NodeID(string(rune('a' + i)))
		w.nodes = append(w.nodes, n)
	}
	for i := range rapid.IntRange(holders/2, holders).Draw(t, "holders") {
		h, ok := start(w.nodes, fmt.Sprintf("u%02d", i), int32(rapid.IntRange(0, priority).Draw(t, "priority")), int64(rapid.IntRange(1, 4).Draw(t, "started")),
			rapid.IntRange(1, 3).Draw(t, "parts"), drawRequest(t))
		if h.Pinned = rapid.IntRange(0, 7).Draw(t, "pinned") == 0; ok {
			w.holders = append(w.holders, h)
		}
	}
	for _, n := range w.nodes {
		n.Free.Unhealthy |= uint64(rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "unhealthy"))
		n.Ready = rapid.IntRange(0, 9).Draw(t, "ready") > 0
		n.Unschedulable = rapid.IntRange(0, 9).Draw(t, "cordoned") == 0
		if rapid.IntRange(0, 6).Draw(t, "tainted") == 0 {
			taint(n)
		}
		n.Refresh()
	}
	w.unit = place.Unit{Members: rapid.IntRange(1, members).Draw(t, "members"), Request: drawRequest(t)}
	return w
}

func drawRequest(t *rapid.T) resource.Request {
	r := resource.Request{
		CPU:    resource.Millicores(rapid.SampledFrom([]int{500, 8000, 20_000, 60_000}).Draw(t, "cpu")),
		Memory: resource.Bytes(rapid.SampledFrom([]int64{0, 1, 100}).Draw(t, "memory")) * gib,
		NUMA:   resource.NUMAPolicy(rapid.IntRange(0, 3).Draw(t, "numa")),
	}
	if rapid.IntRange(0, 4).Draw(t, "whole cores") == 0 {
		r.CPU, r.Cores = 0, rapid.SampledFrom([]int{1, 8, 30}).Draw(t, "cores")
	}
	switch rapid.IntRange(0, 3).Draw(t, "devices") {
	case 0:
		r.GPUShare = resource.Milli(rapid.SampledFrom([]int{250, 500, 900}).Draw(t, "share"))
	case 1, 2:
		r.GPUs = rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, "gpus")
		r.Link = resource.LinkRequirement(rapid.IntRange(0, 2).Draw(t, "link"))
	}
	return r
}

// eligible says who may be evicted, by the words of Find.
func (w *world) eligible(h preempt.Holder) bool {
	return h.Priority < priority && !h.Pinned && !slices.ContainsFunc(h.Parts, func(p preempt.Part) bool {
		return slices.ContainsFunc(w.nodes, func(n *cluster.Node) bool { return n.ID == p.Node && !n.Ready })
	})
}

// makesRoom is the oracle's verdict on one set: count what fits on each node.
func (w *world) makesRoom(t *rapid.T, victims []preempt.Holder) bool {
	sum := 0
	for _, n := range w.nodes {
		if !n.Ready || n.Unschedulable || tainted(n) {
			continue
		}
		free := n.Free.Clone()
		for _, v := range victims {
			for _, p := range v.Parts {
				if p.Node == n.ID {
					if err := n.Host.Give(free, p.Assignment); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for range w.unit.Members {
			var a resource.Assignment
			if !n.Host.Assign(free, w.unit.Request, &a) {
				break
			}
			if err := n.Host.Take(free, a); err != nil {
				t.Fatal(err)
			}
			sum++
		}
	}
	return sum >= w.unit.Members
}

// better is the order of the package comment, written down naively.
func better(a, b []preempt.Holder) bool {
	for p := int32(priority); p >= 0; p-- {
		count := func(set []preempt.Holder) (n int) {
			for _, h := range set {
				if h.Priority == p {
					n++
				}
			}
			return n
		}
		if count(a) != count(b) {
			return count(a) < count(b)
		}
	}
	value := func(x, y preempt.Holder) int {
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Started, y.Started), cmp.Compare(x.Unit, y.Unit))
	}
	a, b = slices.SortedFunc(slices.Values(a), value), slices.SortedFunc(slices.Values(b), value)
	for i := range a {
		if c := value(a[i], b[i]); c != 0 {
			return c > 0
		}
	}
	return false
}

// best is the oracle: the best of all sets.
func (w *world) best(t *rapid.T) ([]preempt.Holder, bool) {
	candidates := slices.DeleteFunc(slices.Clone(w.holders), func(h preempt.Holder) bool { return !w.eligible(h) })
	var best []preempt.Holder
	found := false
	for mask := range 1 << len(candidates) {
		var set []preempt.Holder
		for i := range candidates {
			if mask&(1<<i) != 0 {
				set = append(set, candidates[i])
			}
		}
		if (!found || better(set, best)) && w.makesRoom(t, set) {
			best, found = set, true
		}
	}
	return best, found
}

func names(set []preempt.Holder) []string {
	var list []string
	for _, h := range set {
		list = append(list, h.Unit)
	}
	slices.Sort(list)
	return list
}
