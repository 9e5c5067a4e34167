package quota_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// aside is a manager of the same trees on which each consumer stands where it stands in
// m, in the order of its node. Those of absent are left out.
func (h *history) aside(absent map[string]bool) *quota.Manager {
	copied, err := h.m.Unused()
	h.must(err)
	for _, tree := range h.o.trees {
		nodes, err := h.m.Nodes(tree.name)
		h.must(err)
		for _, n := range nodes {
			for _, id := range n.Consumers {
				if absent[tree.name+"/"+id] {
					continue
				}
				view, err := h.m.Consumer(id)
				h.must(err)
				at := slices.IndexFunc(view.Placements, func(p quota.PlacementView) bool { return p.Tree == tree.name })
				demand := view.Placements[at].Demand
				demand.Group = view.Placements[at].Group
				named := quota.ConsumerSpec{ID: tree.name + "/" + id, Demands: []quota.Demand{demand}}
				h.must(copied.AddConsumer(named))
				counted, err := copied.Stand(tree.name, named.ID, n.Name)
				if h.must(err); !counted {
					h.failf("%s does not count %s", tree.name, id)
				}
			}
		}
	}
	return copied
}

// TestUseFollowsFromNodesAlone: whatever has happened on trees, and however their
// limits have changed, the nodes on which consumers are counted tell the use of all nodes.
func TestUseFollowsFromNodesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }, true)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.step()
		}
		h.m.UpdateAll() // the specifications are those in force from now on
		copied := h.aside(nil)
		h.must(copied.Check())
		for _, tree := range h.o.trees {
			want, err := h.m.Nodes(tree.name)
			h.must(err)
			got, err := copied.Nodes(tree.name)
			h.must(err)
			for i := range want {
				for j, id := range want[i].Consumers {
					want[i].Consumers[j] = tree.name + "/" + id
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("tree %s (-as it came about +by nodes):\n%s", tree.name, diff)
			}
		}
		if h.fault != nil {
			t.Fatal(h.fault)
		}
	})
}

// TestLeaveMovesNobody: consumers that leave, in any order, leave the nodes as if they had
// never stood there.
func TestLeaveMovesNobody(t *testing.T) {
	left := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }, true)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.step()
		}
		h.m.UpdateAll()
		copied, absent := h.aside(nil), map[string]bool{}
		for _, id := range rapid.Permutation(copied.ConsumerIDs()).Draw(t, "order") {
			if rapid.Bool().Draw(t, "leaves") {
				absent[id] = true
				tree, _, _ := strings.Cut(id, "/")
				if !copied.Leave(tree, id) || copied.Leave(tree, id) {
					t.Fatalf("%s leaves %s: want true once, then false", id, tree)
				}
				h.must(copied.RemoveConsumer(id))
				left++
			}
		}
		h.must(copied.Check())
		never := h.aside(absent)
		for _, tree := range h.o.trees {
			want, err := never.Nodes(tree.name)
			h.must(err)
			got, err := copied.Nodes(tree.name)
			h.must(err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("tree %s (-never there +left):\n%s", tree.name, diff)
			}
		}
		if h.fault != nil {
			t.Fatal(h.fault)
		}
	})
	if left == 0 {
		t.Error("nobody left")
	}
}

// TestMovedConsumersAreNamed: who knows the nodes of all consumers, and asks about those
// that TakeMoved names alone, knows them still.
func TestMovedConsumersAreNamed(t *testing.T) {
	for seed := range uint64(40) {
		h := newHistory(rand.New(rand.NewPCG(seed, 3)).IntN, seed%2 == 1)
		known, moves := map[string]string{}, 0
		for range 120 {
			h.step()
			for _, id := range h.m.TakeMoved() {
				moves++
				for _, tree := range h.o.trees {
					if node, counted := h.m.NodeOf(tree.name, id); counted {
						known[tree.name+" "+id] = node
					}
				}
			}
			for at, node := range h.places() {
				if known[at] != node {
					t.Fatalf("seed %d: %s is on %s, the moves say %q", seed, at, node, known[at])
				}
			}
		}
		if h.fault != nil {
			t.Fatal(h.fault)
		}
		if again := h.m.TakeMoved(); moves == 0 || len(again) > 0 {
			t.Errorf("seed %d: %d moves, once more %v; want some, and each once", seed, moves, again)
		}
	}
}

func TestStand(t *testing.T) {
	spec := quota.TreeSpec{Name: "T", Resources: []resource.Name{"a"}, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: resource.Vector{"a": 4}}, "mid": {Parent: "root", Quota: resource.Vector{"a": 2}}, "leaf": {Parent: "mid"}, "other": {Parent: "root"},
	}}
	for name, c := range map[string]struct{ group, node, want string }{
		"on the group":                               {"leaf", "leaf", "leaf"},
		"above the group":                            {"leaf", "root", "root"},
		"beside the group: on the group":             {"leaf", "other", "leaf"},
		"on a node that has gone: on the group":      {"leaf", "gone", "leaf"},
		"of a group that has gone: on the root":      {"gone", "mid", "root"},
		"of a group with groups below: on the group": {"mid", "root", "mid"},
	} {
		t.Run(name, func(t *testing.T) {
			m := quota.NewManager(quota.Options{})
			if _, err := m.AddTree(spec); err != nil {
				t.Fatal(err)
			}
			if err := m.AddConsumer(quota.ConsumerSpec{ID: "c", Demands: []quota.Demand{{Tree: "T", Group: c.group, Request: resource.Vector{"a": 9}}}}); err != nil {
				t.Fatal(err)
			}
			if counted, err := m.Stand("T", "c", c.node); !counted || err != nil {
				t.Fatal(counted, err)
			}
			if got, counted := m.NodeOf("T", "c"); got != c.want || !counted {
				t.Errorf("on %q, want %q", got, c.want)
			}
			if _, err := m.Stand("T", "c", c.node); !errors.Is(err, quota.ErrAllocated) {
				t.Errorf("a second time: %v", err)
			}
			if err := m.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
