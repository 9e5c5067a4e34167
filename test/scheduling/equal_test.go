package scheduling_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/resource"
)

// worlds is how many random clusters are compared, 100,000 for a full run.
var worlds = flag.Uint64("scheduling.worlds", 2000, "random clusters to compare")

// TestDecisionsEqualThoseBeforeTheState asks the old and the new code the same
// questions about the same cluster.
func TestDecisionsEqualThoseBeforeTheState(t *testing.T) {
	var placed, found, none int
	for seed := range *worlds {
		w := makeWorld(seed)
		old, state := w.copyNodes(), cluster.NewState(w.copyNodes()...)
		for range 3 {
			u := w.unit()
			compareExplanations(t, old, state, u)
			victims, ok := compareVictims(t, old, state, u, w.holders)
			switch {
			case !ok:
				none++
			case len(victims) > 0:
				found++
			}
			if comparePlaces(t, old, state, u, w.oneIn(2)) {
				placed++
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	t.Logf("%d placed, %d with victims, %d not even with victims", placed, found, none)
	if placed == 0 || found == 0 || none == 0 {
		t.Error("the worlds leave something out")
	}
}

// comparePlaces places a unit with both, and reports whether it has a place. With
// keep the unit keeps the place.
func comparePlaces(t *testing.T, old []*cluster.Node, state *cluster.State, u place.Unit, keep bool) bool {
	t.Helper()
	want, wantOK := oldPlace(old, u)
	mark := state.Checkpoint()
	got, ok := place.Place(state, u)
	sameMembers(t, "place", want, got, wantOK, ok)
	sameNodes(t, "while placed", old, state)
	if keep {
		state.Keep(mark)
	} else {
		oldUndo(want)
		state.Rollback(mark)
	}
	sameNodes(t, "after the place", old, state)
	return ok
}

// compareVictims chooses victims with both, for the whole list of holders and for
// a few of them by name.
func compareVictims(t *testing.T, old []*cluster.Node, state *cluster.State, u place.Unit, holders []preempt.Holder) ([]string, bool) {
	t.Helper()
	want, wantOK := oldFind(old, u, priority, holders)
	got, ok := preempt.Find(state, u, priority, holders)
	if !slices.Equal(want.Victims, got.Victims) {
		t.Errorf("victims %v, want %v", got.Victims, want.Victims)
	}
	sameMembers(t, "find", want.Members, got.Members, wantOK, ok)
	sameNodes(t, "after the victims", old, state)
	few := holders[:len(holders)/2]
	wantMembers, wantOK := oldWith(old, u, few)
	members, withOK := preempt.With(state, u, few)
	sameMembers(t, "with", wantMembers, members, wantOK, withOK)
	sameNodes(t, "after the few", old, state)
	return got.Victims, ok
}

func compareExplanations(t *testing.T, old []*cluster.Node, state *cluster.State, u place.Unit) {
	t.Helper()
	want, got := oldExplain(old, u), place.Explain(state, u)
	want.Members = u.Members // a newer field
	for i := range want.Nodes {
		if r := want.Nodes[i].Reasons; len(r) > 0 && r[0].Code == refused && len(got.Nodes[i].Reasons) > 0 {
			want.Nodes[i].Reasons = got.Nodes[i].Reasons
		}
	}
	byName := func(a, b resource.Reason) int { return strings.Compare(string(a.Resource), string(b.Resource)) }
	slices.SortFunc(want.Shortages, byName)
	slices.SortFunc(got.Shortages, byName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explained (-old +new):\n%s", diff)
	}
	sameNodes(t, "after the explanation", old, state)
}

func sameMembers(t *testing.T, by string, want, got []place.Choice, wantOK, ok bool) {
	t.Helper()
	same := func(a, b place.Choice) bool {
		return a.Index == b.Index && a.Node.ID == b.Node.ID && a.Assignment.Equal(b.Assignment)
	}
	if wantOK != ok || !slices.EqualFunc(want, got, same) {
		t.Errorf("%s: %t %v, want %t %v", by, ok, got, wantOK, want)
	}
}

// sameNodes compares what is free and the aggregates.
func sameNodes(t *testing.T, when string, old []*cluster.Node, state *cluster.State) {
	t.Helper()
	sums := func(n *cluster.Node) [7]int64 {
		return [7]int64{
			int64(n.FreeCPU), int64(n.FreeCores), int64(n.FreeMemory), int64(n.WholeGPUs), int64(n.FreeGPU), int64(n.LargestGPU), int64(n.FreeMIG),
		}
	}
	for i, n := range state.Nodes() {
		if !n.Free.Equal(old[i].Free) || sums(n) != sums(old[i]) {
			t.Errorf("%s %s has %v free, want %v", when, n.ID, sums(n), sums(old[i]))
		}
		if err := n.Host.Check(n.Free); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
}
