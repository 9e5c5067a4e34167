package quota_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
)

// TestAForkBehavesAsItsManager gives a manager and a fork of it the same calls, which
// have the same results, while another fork has other calls.
func TestAForkBehavesAsItsManager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "world")
		h := newHistory(rand.New(rand.NewPCG(seed, 3)).IntN, seed%2 == 1)
		m := h.m
		h.draw = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		for range rapid.IntRange(0, 15).Draw(t, "before") {
			newStroke(h)(m)
		}
		snapshot, state := m.Snapshot(), m.AppendState(nil)
		twin, other := snapshot.Fork(), snapshot.Fork()
		for range rapid.IntRange(0, 15).Draw(t, "after") {
			if rapid.Bool().Draw(t, "elsewhere") {
				newStroke(h)(other)
				continue
			}
			s := newStroke(h)
			if got, want := s(twin), s(m); got != want {
				t.Fatalf("a fork:\n got %s\nwant %s", got, want)
			}
			if err := twin.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(m.AppendState(nil)), string(twin.AppendState(nil))); diff != "" {
			t.Fatalf("a fork is in another state (-want +got):\n%s", diff)
		}
		if late := snapshot.Fork().AppendState(nil); !bytes.Equal(late, state) {
			t.Fatalf("a later fork (-want +got):\n%s", cmp.Diff(string(state), string(late)))
		}
		unused, err := m.Unused()
		if err != nil {
			t.Fatal(err)
		}
		if err := unused.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestForksAreUsedBesideTheirManager is for the race detector: consumers take seats
// on a tree that came after them, and the tree goes again.
func TestForksAreUsedBesideTheirManager(t *testing.T) {
	nodes := map[string]quota.NodeSpec{"all": {Quota: gpus(8)}, "a": {Parent: "all", Quota: gpus(4)}, "b": {Parent: "all", Quota: gpus(4)}}
	m := lab(quota.Options{}, nodes)
	churn := func(m *quota.Manager, round int) error {
		id := fmt.Sprint("c", round)
		if err := m.AddConsumer(quota.ConsumerSpec{ID: id, Demands: []quota.Demand{{Tree: "lab", Group: "a", Request: gpus(1)}, {Tree: "late", Group: "b", Request: gpus(1)}}}); err != nil {
			return err
		}
		if _, err := m.Allocate("lab", id); err != nil {
			return err
		}
		if _, err := m.AddTree(quota.TreeSpec{Name: "late", Nodes: nodes}); err != nil {
			return err
		}
		for _, id := range []string{"c0", id} {
			if _, err := m.Allocate("late", id); err != nil {
				return err
			}
			m.Deallocate("late", id)
		}
		return m.DeleteTree("late")
	}
	var readers sync.WaitGroup
	for round := range 10 {
		snapshot := m.Snapshot()
		for i := range 2 {
			readers.Go(func() {
				if err := churn(snapshot.Fork(), max(1, 100*(round+i))); err != nil && round > 0 {
					t.Error(err)
				}
			})
		}
		if err := churn(m, round); err != nil && round > 0 {
			t.Fatal(err)
		}
	}
	readers.Wait()
}

// BenchmarkSnapshot is what the owner of a manager pays for a snapshot, and its
// reader for a fork.
func BenchmarkSnapshot(b *testing.B) {
	for _, consumers := range []int{1000, 20_000} {
		m := lab(quota.Options{}, map[string]quota.NodeSpec{"all": {Quota: gpus(1 << 40)}, "a": {Parent: "all", Quota: gpus(1 << 40)}})
		for i := range consumers {
			id := fmt.Sprint("c", i)
			if err := m.AddConsumer(quota.ConsumerSpec{ID: id, Demands: []quota.Demand{{Tree: "lab", Group: "a", Request: gpus(1)}}}); err != nil {
				b.Fatal(err)
			}
			if _, err := m.Allocate("lab", id); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("take/consumers=%d", consumers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Snapshot()
			}
		})
		snapshot := m.Snapshot()
		b.Run(fmt.Sprintf("fork/consumers=%d", consumers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				snapshot.Fork()
			}
		})
	}
}

// TestARefusalByUnusedTreesIsForEver: a consumer that trees without any other consumer
// refuse is refused by the same trees however they are used.
func TestARefusalByUnusedTreesIsForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "world")
		h := newHistory(rand.New(rand.NewPCG(seed, 5)).IntN, seed%2 == 1)
		h.draw = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		for range rapid.IntRange(0, 25).Draw(t, "calls") {
			newStroke(h)(h.m)
		}
		h.must(h.m.SetMode(quota.Normal))
		tree := h.o.trees[0].name
		for _, c := range h.specs {
			unused, err := h.m.Unused()
			h.must(err)
			h.must(unused.AddConsumer(c))
			alone, err := unused.Allocate(tree, c.ID)
			if err != nil || alone.OK || h.m.IsAllocated(tree, c.ID) {
				continue
			}
			if r, err := h.m.Snapshot().Fork().Allocate(tree, c.ID); err == nil && r.OK {
				t.Fatalf("%s is refused alone, %v, and has a place beside others, %v", c.ID, alone.Refusal, r.Placed)
			}
		}
		if h.fault != nil {
			t.Fatal(h.fault)
		}
	})
}
