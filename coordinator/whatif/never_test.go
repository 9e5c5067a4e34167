package whatif_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
)

const gpu = int64(resource.WholeDevice)

func TestNever(t *testing.T) {
	two := []nodeSpec{{id: "a", profile: "dgx-a100"}, {id: "b", profile: "dgx-a100"}}
	tree := &quota.TreeSpec{Name: "T", Resources: []resource.Name{resource.GPU}, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: resource.Vector{resource.GPU: 8 * gpu}}, "small": {Parent: "root", Hard: true, Quota: resource.Vector{resource.GPU: 2 * gpu}},
	}}
	zone := func(values ...string) *constraint.Set {
		s := constraint.Spec{NodeSelector: map[string]string{}}
		for _, v := range values {
			s.NodeSelector[v] = "yes"
		}
		return constraint.Compile(s)
	}
	for name, c := range map[string]struct {
		scene       scene
		members     int
		request     resource.Request
		constraints *constraint.Set
		group       string
		want        []whatif.Bound
	}{
		"it fits on an empty cluster": {scene: scene{nodes: two}, members: 2, request: resource.Request{GPUs: 8}},
		"a node that is gone, cordoned and sick can come back": {
			scene:   scene{nodes: []nodeSpec{{id: "a", profile: "dgx-a100", gone: true, cordoned: true, sick: 255}}},
			members: 1, request: resource.Request{GPUs: 8},
		},
		"nobody knows what a node without a host has": {scene: scene{nodes: []nodeSpec{{id: "a"}}}, members: 1, request: resource.Request{GPUs: 16}},
		"a node may get back what it is registered with": {
			scene:   scene{nodes: []nodeSpec{{id: "a", profile: "gpu2", more: resource.Vector{resource.GPU: 4 * gpu}}}},
			members: 1, request: resource.Request{GPUs: 4},
		},
		"no node at all": {members: 1, request: resource.Request{GPUs: 1}, want: []whatif.Bound{{Code: whatif.NoNodes}}},
		"no node has more than 8 GPUs": {
			scene: scene{nodes: two}, members: 1, request: resource.Request{GPUs: 9},
			want: []whatif.Bound{{Code: whatif.NodeTooSmall, Nodes: 2, Resource: resource.GPU, Want: 9 * gpu, Have: 8 * gpu}},
		},
		"all nodes together have 16 GPUs, 24 wanted": {
			scene: scene{nodes: two}, members: 6, request: resource.Request{GPUs: 4},
			want: []whatif.Bound{{Code: whatif.NodesTooSmall, Nodes: 2, Resource: resource.GPU, Want: 24 * gpu, Have: 16 * gpu, Members: 4}},
		},
		"enough in total, but not for whole members": {
			scene: scene{nodes: two}, members: 3, request: resource.Request{GPUs: 5},
			want: []whatif.Bound{{Code: whatif.NodesTooSmall, Nodes: 2, Want: 3, Have: 2, Members: 2}},
		},
		"no node has the label": {
			scene: scene{nodes: two}, members: 1, request: resource.Request{GPUs: 1}, constraints: zone("ssd"),
			want: []whatif.Bound{{Code: whatif.NoLabel, Nodes: 2, Label: constraint.Label{Key: "ssd", Value: "yes"}}},
		},
		"each label is on a node, both are on none": {
			scene: scene{nodes: []nodeSpec{
				{id: "a", profile: "gpu2", labels: map[string]string{"ssd": "yes"}}, {id: "b", profile: "gpu2", labels: map[string]string{"fast": "yes"}},
			}},
			members: 1, request: resource.Request{GPUs: 1}, constraints: zone("ssd", "fast"),
			want: []whatif.Bound{{Code: whatif.NoMatch, Nodes: 2}},
		},
		"all nodes with the label are tainted": {
			scene: scene{nodes: []nodeSpec{
				{id: "a", profile: "gpu2", labels: map[string]string{"ssd": "yes"}, taints: []constraint.Taint{{Key: "k", Effect: constraint.NoSchedule}}}, {id: "b", profile: "gpu2"},
			}},
			members: 1, request: resource.Request{GPUs: 1}, constraints: zone("ssd"),
			want: []whatif.Bound{{Code: whatif.NotTolerated, Nodes: 1, Taint: constraint.Taint{Key: "k", Effect: constraint.NoSchedule}}},
		},
		"the node without a taint is too small, and a tainted one is left out": {
			scene: scene{nodes: []nodeSpec{
				{id: "a", profile: "gpu2"}, {id: "b", profile: "dgx-a100", taints: []constraint.Taint{{Key: "k", Effect: constraint.NoSchedule}}},
			}},
			members: 1, request: resource.Request{GPUs: 4},
			want: []whatif.Bound{{Code: whatif.NodeTooSmall, Nodes: 1, LeftOut: 1, Resource: resource.GPU, Want: 4 * gpu, Have: 2 * gpu}},
		},
		"the nodes with the label are too few": {
			scene: scene{nodes: []nodeSpec{
				{id: "a", profile: "gpu2", labels: map[string]string{"ssd": "yes"}}, {id: "b", profile: "gpu2"}, {id: "c", profile: "gpu2"},
			}},
			members: 2, request: resource.Request{GPUs: 2}, constraints: zone("ssd"),
			want: []whatif.Bound{{Code: whatif.NodesTooSmall, Nodes: 1, LeftOut: 2, Resource: resource.GPU, Want: 4 * gpu, Have: 2 * gpu, Members: 1}},
		},
		"no node has the model": {
			scene: scene{nodes: two}, members: 1, request: resource.Request{GPUs: 1, GPUModel: "B200"},
			want: []whatif.Bound{{Code: whatif.NoModel, Nodes: 2, Model: "B200"}},
		},
		"no GPU has so much memory": {
			scene: scene{nodes: two}, members: 1, request: resource.Request{GPUs: 1, GPUMemory: 141 * gib},
			want: []whatif.Bound{{Code: whatif.NoGPUMemory, Nodes: 2, Want: int64(141 * gib), Have: int64(80 * gib)}},
		},
		"no NUMA node has so many CPUs": {
			scene: scene{nodes: two}, members: 1, request: resource.Request{CPU: 200_000, NUMA: resource.NUMASingleNode},
			want: []whatif.Bound{{Code: whatif.NoNode, Nodes: 2}},
		},
		"it needs more nodes than a transaction takes": {
			scene: scene{nodes: two, maxOps: 7}, members: 2, request: resource.Request{GPUs: 8},
			want: []whatif.Bound{{Code: whatif.TooWide, Nodes: 2, Want: 2, Have: 1, Members: 1}},
		},
		"the namespace has a lower limit": {
			scene: scene{nodes: two, hard: resource.Vector{resource.GPU: 4 * gpu}}, members: 2, request: resource.Request{GPUs: 4},
			want: []whatif.Bound{{Code: whatif.OverLimit, Limit: "hard", Resource: resource.GPU, Want: 8 * gpu, Have: 4 * gpu}},
		},
		"a hard group of a tree has less": {
			scene: scene{nodes: two, tree: tree}, members: 1, request: resource.Request{GPUs: 4}, group: "small",
			want: []whatif.Bound{{Code: whatif.OverTree, Tree: "T", Resource: resource.GPU, Want: 4 * gpu, Have: 2 * gpu,
				Refusal: quota.Refusal{Code: quota.OverQuota, Tree: "T", Node: "small", Resource: resource.GPU, Want: 4 * gpu, Have: 2 * gpu}}},
		},
		"its tree does not exist": {
			scene: scene{nodes: two}, members: 1, request: resource.Request{GPUs: 4}, group: "small",
			want: []whatif.Bound{{Code: whatif.NoTree, Tree: "T", Group: "small"}},
		},
		"both nodes and quota are in the way": {
			scene: scene{nodes: two, hard: resource.Vector{resource.GPU: 4 * gpu}}, members: 1, request: resource.Request{GPUs: 16},
			want: []whatif.Bound{
				{Code: whatif.NodeTooSmall, Nodes: 2, Resource: resource.GPU, Want: 16 * gpu, Have: 8 * gpu},
				{Code: whatif.OverLimit, Limit: "hard", Resource: resource.GPU, Want: 16 * gpu, Have: 4 * gpu},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := c.scene.build(t)
			u := unitOf("ml/job/new/0", 0, 1, c.members, c.request, c.group)
			u.Demand.Constraints = c.constraints
			got := w.Never(&u)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(whatif.Bound{}, "Reasons")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, b := range got {
				if b.Code == whatif.NoNode && len(b.Reasons) == 0 {
					t.Error("no reason is given")
				}
			}
		})
	}
}

// TestNeverIsNotSaidOfAUnitThatCouldRun ends some of the units that run, in some
// order, and brings nodes back. A unit that then runs could run all the time.
func TestNeverIsNotSaidOfAUnitThatCouldRun(t *testing.T) {
	could := 0
	rapid.Check(t, func(t *rapid.T) {
		s, u := drawScene(t, 5)
		w, _ := s.build(t)
		never := w.Never(&u)
		later := *s
		later.nodes = slices.Clone(s.nodes)
		for i := range later.nodes {
			n := &later.nodes[i]
			if n.profile == "" {
				n.profile = rapid.SampledFrom([]string{"gpu2", "dgx-a100"}).Draw(t, "comes as")
			}
			n.gone, n.cordoned, n.sick = false, false, 0
		}
		later.running = rapid.Permutation(s.running).Draw(t, "order")[:rapid.IntRange(0, len(s.running)).Draw(t, "left")]
		then, _ := later.build(t)
		if !runs(t, then, u) {
			return
		}
		if could++; len(never) > 0 {
			t.Fatalf("it is said to run never for %+v, and runs", never)
		}
	})
	if could == 0 {
		t.Fatal("no drawn unit ever ran")
	}
}

// TestAFewNodesSayWhatAllSay compares the answer that stops at the first nodes that
// hold the unit with the one that looks at every node.
func TestAFewNodesSayWhatAllSay(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		s, u := drawScene(t, 5)
		if u.Demand.Sets != nil {
			t.Skip("BoundOnNodes is of equal members")
		}
		w, _ := s.build(t)
		w.MaxOps = rapid.SampledFrom([]int{4, 128}).Draw(t, "operations of a transaction")
		f := w.OnNodes(&u)
		b, never := w.BoundOnNodes(&u)
		switch {
		case never != (f.Bound != nil), never && f.Unseen:
			t.Fatalf("few nodes say %+v, all say %t %+v", f, never, b)
		case never:
			if diff := cmp.Diff(b, *f.Bound); diff != "" {
				t.Fatalf("bounds (-all +few):\n%s", diff)
			}
			met["never"]++
		case f.Unseen:
			met["unseen"]++
		default:
			met["one day"]++
		}
	})
	for _, answer := range []string{"never", "unseen", "one day"} {
		if met[answer] == 0 {
			t.Errorf("no drawn unit ever had the answer %q: %v", answer, met)
		}
	}
}

// runs reports whether a unit is admitted and has a place, with nobody evicted.
func runs(t *rapid.T, w *whatif.World, u whatif.Unit) bool {
	if w.Limits.Admit(&u.Charge) != nil {
		return false
	}
	if len(u.Charges) > 1 {
		check(t, w.Trees.AddConsumer(u.Consumer()))
		if r, err := w.Trees.TryAllocateForest(forest, u.Key.Path); err != nil || !r.OK || len(r.Preempted) > 0 {
			return false
		}
	}
	_, ok := place.Place(w.State, u.Demand)
	return ok
}

// TestNeverOfMembersThatDiffer: the bound is of one set, which it names, or of several
// together.
func TestNeverOfMembersThatDiffer(t *testing.T) {
	two := []nodeSpec{{id: "a", profile: "dgx-a100", labels: map[string]string{"zone": "x"}}, {id: "b", profile: "dgx-a100"}}
	set := func(name string, members int, r resource.Request) place.Set {
		return place.Set{Name: name, Members: members, Request: r}
	}
	launcher := set("launcher", 1, resource.Request{CPU: 4000})
	inZone := launcher
	inZone.Constraints = constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"zone": "z"}})
	for name, c := range map[string]struct {
		sets   []place.Set
		maxOps int
		want   []whatif.Bound
	}{
		"all have room":                      {sets: []place.Set{launcher, set("worker", 2, resource.Request{GPUs: 8})}},
		"a set has a label that no node has": {sets: []place.Set{inZone, set("worker", 2, resource.Request{GPUs: 8})}, want: []whatif.Bound{{Code: whatif.NoLabel, Set: "launcher", Nodes: 2, Label: constraint.Label{Key: "zone", Value: "z"}}}},
		"a member of a set is too large":     {sets: []place.Set{launcher, set("worker", 2, resource.Request{GPUs: 9})}, want: []whatif.Bound{{Code: whatif.NodeTooSmall, Set: "worker", Nodes: 2, Resource: resource.GPU, Want: 9 * gpu, Have: 8 * gpu}}},
		"two sets are too many together": {
			sets: []place.Set{set("head", 1, resource.Request{GPUs: 5}), launcher, set("worker", 2, resource.Request{GPUs: 6})},
			want: []whatif.Bound{{Code: whatif.NodesTooSmall, Nodes: 2, Want: 3, Have: 2, Members: 2}},
		},
		"the sum is too great": {
			sets: []place.Set{set("large", 1, resource.Request{GPUs: 8}), set("small", 9, resource.Request{GPUs: 1})},
			want: []whatif.Bound{{Code: whatif.NodesTooSmall, Nodes: 2, Resource: resource.GPU, Want: 17 * gpu, Have: 16 * gpu, Members: 9}},
		},
		"they need more nodes than a transaction takes": {
			sets: []place.Set{set("a", 1, resource.Request{GPUs: 8}), set("b", 1, resource.Request{GPUs: 7})}, maxOps: 7,
			want: []whatif.Bound{{Code: whatif.TooWide, Nodes: 2, Want: 2, Have: 1, Members: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := (&scene{nodes: two, maxOps: c.maxOps}).build(t)
			u := unitOf("ml/job/new/0", 0, 1, 0, resource.Request{}, "")
			for _, s := range c.sets {
				u.Demand.Sets, u.Demand.Members = append(u.Demand.Sets, s), u.Demand.Members+s.Members
			}
			got := w.Never(&u)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(whatif.Bound{}, "Reasons")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestHelpForMembersThatDiffer: a hint names the set that it changes.
func TestHelpForMembersThatDiffer(t *testing.T) {
	w, _ := (&scene{nodes: []nodeSpec{{id: "a", profile: "dgx-a100"}}, running: []whatif.Unit{unitOf("ml/job/old/0", 0, 1, 1, resource.Request{GPUs: 4}, "")}}).build(t)
	u := unitOf("ml/job/new/0", 0, 2, 3, resource.Request{}, "")
	u.Demand.Sets = []place.Set{{Name: "launcher", Members: 1, Request: resource.Request{CPU: 1000}}, {Name: "worker", Members: 2, Request: resource.Request{GPUs: 3, CPU: 1000}}}
	hints, _, _ := w.Help(&u)
	got := map[whatif.HintCode]string{}
	for _, h := range hints {
		got[h.Code] = h.Set
	}
	if got[whatif.FewerGPUs] != "worker" || got[whatif.FewerMembers] != "worker" {
		t.Errorf("the sets by hint: %v", got)
	}
	if _, found := got[whatif.WaitFor]; !found {
		t.Errorf("no hint to wait: %v", got)
	}
}

// TestNeverByModels: work that names no model can never run where quota of all models that
// it can get holds fewer members than it has.
func TestNeverByModels(t *testing.T) {
	const a100, h100 = resource.Name("nvidia.com/gpu.a100"), resource.Name("nvidia.com/gpu.h100")
	both := []nodeSpec{{id: "a", profile: "dgx-a100"}, {id: "b", profile: "dgx-h100"}}
	tree := &quota.TreeSpec{Name: "T", Resources: []resource.Name{a100, h100}, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: resource.Vector{a100: gpu, h100: gpu}}, "g": {Parent: "root", Quota: resource.Vector{a100: gpu, h100: gpu}},
	}}
	for name, c := range map[string]struct {
		scene   scene
		members int
		request resource.Request
		group   string
		want    []string // the resource of each bound
	}{
		"no quota of models":                 {scene{nodes: both}, 4, resource.Request{GPUs: 2}, "", nil},
		"quota of the one model alone":       {scene{nodes: both, hard: resource.Vector{a100: 0}}, 4, resource.Request{GPUs: 2}, "", nil},
		"quota of both for all members":      {scene{nodes: both, hard: resource.Vector{a100: 4 * gpu, h100: 4 * gpu}}, 4, resource.Request{GPUs: 2}, "", nil},
		"quota of both for one member fewer": {scene{nodes: both, hard: resource.Vector{a100: 4 * gpu, h100: 3 * gpu}}, 4, resource.Request{GPUs: 2}, "", []string{string(a100), string(h100)}},
		"a member needs more than either":    {scene{nodes: both, hard: resource.Vector{a100: gpu, h100: gpu}}, 1, resource.Request{GPUs: 2}, "", []string{string(a100), string(h100)}},
		"no GPU":                             {scene{nodes: both, hard: resource.Vector{a100: 0, h100: 0}}, 1, resource.Request{CPU: 1000}, "", nil},
		"a node whose host is not known":     {scene{nodes: append([]nodeSpec{{id: "c"}}, both...), hard: resource.Vector{a100: 0, h100: 0}}, 1, resource.Request{GPUs: 1}, "", nil},
		"a tree of models":                   {scene{nodes: both, tree: tree}, 3, resource.Request{GPUs: 1}, "g", []string{string(a100), string(h100)}},
		"a tree of models with room":         {scene{nodes: both, tree: tree}, 2, resource.Request{GPUs: 1}, "g", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := c.scene.build(t)
			u := unitOf("ml/job/new/0", 0, 1, c.members, c.request, c.group)
			var got []string
			for _, b := range w.Never(&u) {
				got = append(got, string(b.Resource))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
