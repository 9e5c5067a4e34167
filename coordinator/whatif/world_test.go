package whatif_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

const gib = resource.Bytes(1) << 30

// namespace is that of all units of these tests, forest that of all trees.
const (
	namespace = "ml"
	forest    = "every"
)

// hosts are made once for each profile: their tables take a while.
var hosts = map[string]*fit.Host{}

func hostOf(tb interface{ Fatal(...any) }, profile string) *fit.Host {
	if h := hosts[profile]; h != nil {
		return h
	}
	p, err := fake.Lookup(profile)
	if err != nil {
		tb.Fatal(err)
	}
	h, err := fit.NewHost(p.Topology(), p.Inventory(profile), fit.Reserved{})
	if err != nil {
		tb.Fatal(err)
	}
	hosts[profile] = h
	return h
}

// nodeSpec describes a node of a test.
type nodeSpec struct {
	id       resource.NodeID
	profile  string // "" for a node without a host yet
	labels   map[string]string
	taints   []constraint.Taint
	gone     bool // not ready
	cordoned bool
	sick     uint64
	more     resource.Vector // registered, nil for what the host has
}

// scene describes a world of a test, so that the test can make it several times.
type scene struct {
	nodes   []nodeSpec
	running []whatif.Unit // placed one after the other, where there is room and quota
	pinned  map[string]bool
	hard    resource.Vector // of the namespace, nil for no limit
	tree    *quota.TreeSpec
	maxOps  int
}

// build makes the world, and names the units that run.
func (s *scene) build(tb interface{ Fatal(...any) }) (*whatif.World, []string) {
	w := &whatif.World{World: sched.World{
		State: &cluster.State{}, Limits: quota.New(), Trees: quota.NewManager(quota.Options{}), Forest: forest, MaxOps: max(s.maxOps, 128),
	}}
	if s.maxOps > 0 {
		w.MaxOps = s.maxOps
	}
	check(tb, w.Trees.SetMode(quota.Normal))
	check(tb, w.Trees.AddForest(forest))
	if s.tree != nil {
		_, err := w.Trees.AddTree(*s.tree)
		check(tb, err)
		check(tb, w.Trees.AddTreeToForest(forest, s.tree.Name))
	}
	if s.hard != nil {
		w.Limits.SetLimit(quota.Limit{Group: namespace, Name: "hard", Hard: s.hard})
	}
	for _, spec := range s.nodes {
		n := &cluster.Node{ID: spec.id, Ready: true}
		if spec.profile != "" {
			n.Host = hostOf(tb, spec.profile)
			n.Free = n.Host.NewFree()
		}
		w.State.Insert(n)
		w.State.Relabel(n, spec.labels, spec.taints)
		w.State.SetRegistered(n, spec.more)
	}
	var started []string
	for _, u := range s.running {
		if run(tb, w, u, s.pinned[u.Key.Path]) {
			started = append(started, u.Key.Path)
		}
	}
	for i, n := range w.State.Nodes() {
		spec := s.nodes[slices.IndexFunc(s.nodes, func(spec nodeSpec) bool { return spec.id == n.ID })]
		w.State.SetReady(n, !spec.gone && n.Host != nil)
		w.State.SetUnschedulable(n, spec.cordoned)
		if n.Host != nil {
			w.State.SetUnhealthy(n, s.nodes[i].sick)
		}
	}
	return w, started
}

// run places a unit and charges it.
func run(tb interface{ Fatal(...any) }, w *whatif.World, u whatif.Unit, pinned bool) bool {
	if w.Limits.Admit(&u.Charge) != nil {
		return false
	}
	plan, ok := place.Place(w.State, u.Demand)
	if !ok {
		return false
	}
	id := u.Key.Path
	check(tb, w.Trees.AddConsumer(u.Consumer()))
	if len(u.Charges) > 1 {
		r, err := w.Trees.TryAllocateForest(forest, id)
		check(tb, err)
		if !r.OK || len(r.Preempted) > 0 {
			check(tb, w.Trees.UndoAllocateForest(forest, id))
			check(tb, w.Trees.RemoveConsumer(id))
			for _, m := range plan {
				check(tb, w.State.Give(m.Node, m.Assignment))
			}
			return false
		}
	}
	w.Limits.Charge(resource.TxID(id), u.Charge)
	o := &cluster.Occupant{Unit: id, Tx: resource.TxID(id), Priority: u.Key.Priority, Started: int64(u.Key.Counter), Pinned: pinned}
	for _, m := range plan {
		if !slices.Contains(o.Nodes, m.Node.ID) {
			o.Nodes = append(o.Nodes, m.Node.ID)
		}
		o.Parts = append(o.Parts, cluster.Part{Node: m.Node.ID, Assignment: m.Assignment})
	}
	slices.Sort(o.Nodes)
	w.State.SetOccupant(o)
	return true
}

// unitOf is a unit of a name and priority that waits.
func unitOf(name string, priority int32, counter uint64, members int, r resource.Request, group string) whatif.Unit {
	u := whatif.Unit{Unit: sched.Unit{
		Key:    queue.Key{Priority: priority, Epoch: 1, Counter: counter, Path: name},
		Demand: place.Unit{Members: members, Request: r},
		Right:  sched.OwnQuota,
	}}
	u.Charge = quota.Charge{Group: namespace, Request: r.Vector().Scaled(int64(members)), Members: int64(members)}
	u.Charges = []record.Charge{{Tree: quota.Tree, Group: namespace, Request: u.Charge.Request}}
	if group != "" {
		u.Charges = append(u.Charges, record.Charge{Tree: "T", Group: group, Request: u.Charge.Request})
	}
	return u
}

func check(tb interface{ Fatal(...any) }, err error) {
	if err != nil {
		tb.Fatal(err)
	}
}

// drawScene draws a small cluster, who runs on it, and a unit that asks for room.
func drawScene(t *rapid.T, running int) (*scene, whatif.Unit) {
	s := &scene{pinned: map[string]bool{}}
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		n := nodeSpec{
			id:       resource.NodeID(string(rune('a' + i))),
			profile:  rapid.SampledFrom([]string{"gpu2", "gpu2", "asym-3131", "dgx-a100", "pcie-8x2", ""}).Draw(t, "profile"),
			labels:   map[string]string{"zone": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "zone")},
			gone:     rapid.IntRange(0, 6).Draw(t, "gone") == 0,
			cordoned: rapid.IntRange(0, 6).Draw(t, "cordoned") == 0,
			sick:     uint64(rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "unhealthy")),
		}
		if rapid.IntRange(0, 5).Draw(t, "tainted") == 0 {
			n.taints = []constraint.Taint{{Key: "k", Value: "v", Effect: constraint.NoSchedule}}
		}
		s.nodes = append(s.nodes, n)
	}
	group := ""
	if rapid.Bool().Draw(t, "has a tree") {
		group = "a"
		amount := func(label string) resource.Vector {
			return resource.Vector{resource.GPU: int64(rapid.IntRange(0, 12).Draw(t, label)) * 1000}
		}
		s.tree = &quota.TreeSpec{Name: "T", Resources: []resource.Name{resource.GPU}, Nodes: map[string]quota.NodeSpec{
			"root": {Quota: amount("root")}, "a": {Parent: "root", Quota: amount("a")}, "b": {Parent: "root", Quota: amount("b"), Hard: rapid.Bool().Draw(t, "hard")},
		}}
	}
	if rapid.IntRange(0, 2).Draw(t, "has a limit") == 0 {
		s.hard = resource.Vector{resource.GPU: int64(rapid.IntRange(0, 12).Draw(t, "limit")) * 1000}
	}
	for i := range rapid.IntRange(0, running).Draw(t, "running") {
		in := group
		if in != "" {
			in = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "group")
		}
		u := unitOf(fmt.Sprintf("ml/job/u%02d/0", i), int32(rapid.IntRange(-1, 3).Draw(t, "priority")), uint64(i+1), rapid.IntRange(1, 3).Draw(t, "members"), drawRequest(t), in)
		s.running = append(s.running, u)
		s.pinned[u.Key.Path] = rapid.IntRange(0, 6).Draw(t, "pinned") == 0
	}
	u := unitOf("ml/job/new/0", int32(rapid.IntRange(0, 2).Draw(t, "priority asked")), 100, rapid.IntRange(1, 4).Draw(t, "members asked"), drawRequest(t), group)
	u.Right = rapid.SampledFrom([]sched.Right{sched.Nobody, sched.OwnQuota, sched.OwnQuota, sched.Lower}).Draw(t, "right")
	if rapid.IntRange(0, 2).Draw(t, "constrained") == 0 {
		u.Demand.Constraints = constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"zone": rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "zone asked")}})
	}
	if rapid.IntRange(0, 2).Draw(t, "members differ") == 0 {
		u = drawMore(t, u)
	}
	return s, u
}

// drawMore gives a unit further members, which differ.
func drawMore(t *rapid.T, u whatif.Unit) whatif.Unit {
	sets := []place.Set{{Name: "first", Members: u.Demand.Members, Request: u.Demand.Request, Constraints: u.Demand.Constraints}}
	for i := range rapid.IntRange(1, 2).Draw(t, "more sets") {
		sets = append(sets, place.Set{Name: fmt.Sprint("more ", i), Members: rapid.IntRange(1, 2).Draw(t, "more members"), Request: drawRequest(t)})
	}
	return withSets(u, sets)
}

// withSets is the unit with these members.
func withSets(u whatif.Unit, sets []place.Set) whatif.Unit {
	d := &u.Demand
	d.Sets, d.Members, d.Request, d.Constraints = sets, 0, sets[0].Request, sets[0].Constraints
	charge := resource.Vector{}
	for _, s := range sets {
		d.Members += s.Members
		charge.Add(s.Request.Charge().Scaled(int64(s.Members)))
	}
	u.Charge.Request, u.Charge.Members = charge, int64(d.Members)
	u.Charges = slices.Clone(u.Charges)
	for i := range u.Charges {
		u.Charges[i].Request = charge
	}
	return u
}

func drawRequest(t *rapid.T) resource.Request {
	r := resource.Request{
		CPU:    resource.Millicores(rapid.SampledFrom([]int{500, 8000, 20_000, 60_000, 200_000}).Draw(t, "cpu")),
		Memory: resource.Bytes(rapid.SampledFrom([]int64{0, 1, 100, 600}).Draw(t, "memory")) * gib,
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
		r.GPUModel = rapid.SampledFrom([]string{"", "", "", "NVIDIA A100-SXM4-80GB", "none"}).Draw(t, "model")
	}
	return r
}
