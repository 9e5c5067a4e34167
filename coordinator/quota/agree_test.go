package quota_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRandomHistoriesAgreeWithTheOracle(t *testing.T) {
	for name, options := range map[string]bool{"without options": false, "with options": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := newHistory(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }, options)
				for range rapid.IntRange(1, 80).Draw(t, "steps") {
					if h.step(); h.fault != nil {
						t.Fatal(h.fault)
					}
				}
			})
		})
	}
}

// A hundred thousand calls, over many small worlds.
func TestLongHistoriesAgreeWithTheOracle(t *testing.T) {
	calls := 100_000
	if testing.Short() {
		calls = 5_000
	}
	evicted, admitted, rolledBack := 0, 0, 0
	for seed := uint64(0); calls > 0; seed++ {
		h := newHistory(rand.New(rand.NewPCG(seed, 1)).IntN, seed%2 == 1)
		for i := range 100 {
			if h.step(); h.fault != nil {
				t.Fatalf("seed %d, step %d: options %+v: %v", seed, i, h.o.opts, h.fault)
			}
			calls--
		}
		evicted, admitted, rolledBack = evicted+h.evicted, admitted+h.admitted, rolledBack+h.rolledBack
	}
	t.Logf("%d consumers were admitted, %d evicted, %d checkpoints rolled back", admitted, evicted, rolledBack)
}

func TestTheSameCallsLeadToTheSameStates(t *testing.T) {
	for seed := range uint64(20) {
		play := func() []byte {
			h := newHistory(rand.New(rand.NewPCG(seed, 2)).IntN, seed%2 == 1)
			h.record = true
			for range 200 {
				h.step()
			}
			return h.recorded
		}
		if first, second := play(), play(); !bytes.Equal(first, second) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// places is where every consumer stands, by "tree consumer".
func (h *history) places() map[string]string {
	at := map[string]string{}
	for _, t := range h.o.trees {
		nodes, err := h.m.Nodes(t.name)
		h.must(err)
		for _, n := range nodes {
			for _, id := range n.Consumers {
				at[t.name+" "+id] = n.Name
			}
		}
	}
	return at
}

// checkMoves verifies that Moves tells every change since before.
func (h *history) checkMoves(before map[string]string) {
	for _, move := range h.m.Moves() {
		key := move.Tree + " " + move.Consumer
		if before[key] != move.From {
			h.failf("%+v: it was on %q", move, before[key])
		}
		before[key] = move.To
		if move.To == "" {
			delete(before, key)
		}
	}
	if diff := cmp.Diff(h.places(), before); diff != "" {
		h.failf("moves tell something else (-state +moves):\n%s", diff)
	}
}

// compare compares every node: amounts, and consumers in their order.
func (h *history) compare() {
	h.must(h.m.Check())
	for _, t := range h.o.trees {
		nodes, err := h.m.Nodes(t.name)
		h.must(err)
		if len(nodes) != len(t.nodes) {
			h.failf("tree %s has %d nodes, the oracle's %d", t.name, len(nodes), len(t.nodes))
			return
		}
		for _, n := range nodes {
			var want []string
			for _, s := range t.nodes[n.Name].list {
				want = append(want, s.id)
			}
			if !slices.Equal(n.Consumers, want) {
				h.failf("tree %s, node %s: consumers %v, the oracle has %v", t.name, n.Name, n.Consumers, want)
			}
			for name, held := range n.Allocated {
				if want := t.nodes[n.Name].sum(name, nil); held != want {
					h.failf("tree %s, node %s: %s: allocated %d, the oracle has %d", t.name, n.Name, name, held, want)
				}
			}
		}
	}
	if h.record {
		h.recorded = h.m.AppendState(h.recorded)
	}
}
