package preempt_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/fit"
)

func TestFindAgreesWithTheOracle(t *testing.T) {
	t.Run("one member", rapid.MakeCheck(func(t *rapid.T) { agrees(t, drawWorld(t, 9, 1)) }))
	t.Run("gangs", rapid.MakeCheck(func(t *rapid.T) { agrees(t, drawWorld(t, 8, 5)) }))
}

func agrees(t *rapid.T, w world) {
	before := frees(w.nodes)
	want, feasible := w.best(t)
	plan, ok := preempt.Find(cluster.NewState(w.nodes...), w.unit, priority, w.holders)
	if ok != feasible {
		t.Fatalf("found: %t %v; the oracle has %t %v", ok, plan.Victims, feasible, names(want))
	}
	w.unchanged(t, before)
	if !ok {
		return
	}
	if diff := cmp.Diff(names(want), plan.Victims); diff != "" {
		t.Fatalf("victims (-want +got):\n%s", diff)
	}
	w.possible(t, plan.Members, want)

	slices.Reverse(w.holders)
	again, _ := preempt.Find(cluster.NewState(w.nodes...), w.unit, priority, w.holders)
	if diff := cmp.Diff(plan.Victims, again.Victims); diff != "" {
		t.Fatalf("in another order of the holders (-first +second):\n%s", diff)
	}
	members, ok := preempt.With(cluster.NewState(w.nodes...), w.unit, want)
	if !ok || !slices.EqualFunc(members, plan.Members, func(a, b place.Choice) bool { return a.Node == b.Node && a.Assignment.Equal(b.Assignment) }) {
		t.Fatalf("the same victims by name: %t, %d members elsewhere than planned", ok, len(members))
	}
	w.unchanged(t, before)
}

// TestAnIndexAnswersAsFind asks one index about several units in turn. Each has the
// answer that it has from an index of its own.
func TestAnIndexAnswersAsFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 6, 4)
		state := cluster.NewState(w.nodes...)
		x := preempt.NewIndex(state, w.holders)
		for range 3 {
			u := w.unit
			if rapid.Bool().Draw(t, "another unit") {
				u.Members, u.Request.GPUs = rapid.IntRange(1, 4).Draw(t, "members"), rapid.IntRange(1, 3).Draw(t, "GPUs")
				u.Constraints = nil
			}
			if rapid.Bool().Draw(t, "a cordon changes") {
				n := rapid.SampledFrom(w.nodes).Draw(t, "node")
				state.SetUnschedulable(n, !n.Unschedulable)
			}
			at := int32(rapid.IntRange(-1, priority+1).Draw(t, "priority"))
			want, wantOK := preempt.Find(state, u, at, w.holders)
			got, ok := x.Find(u, at)
			if ok != wantOK || !slices.Equal(got.Victims, want.Victims) {
				t.Fatalf("%+v of priority %d: the index finds %t %v, want %t %v", u, at, ok, got.Victims, wantOK, want.Victims)
			}
			if !slices.EqualFunc(got.Members, want.Members, func(a, b place.Choice) bool { return a.Node == b.Node && a.Assignment.Equal(b.Assignment) }) {
				t.Fatalf("the members go to %+v, want %+v", got.Members, want.Members)
			}
		}
	})
}

func TestGreedyIsMinimalAndSparesHigherPriorities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 8, 5)
		best, feasible := w.best(t)
		if !feasible || len(best) == 0 {
			return
		}
		victims, ok := preempt.Greedy(cluster.NewState(w.nodes...), w.unit, priority, w.holders)
		if !ok {
			t.Fatalf("no set found; the oracle has %v", names(best))
		}
		var set []preempt.Holder
		for _, h := range w.holders {
			if slices.Contains(victims, h.Unit) {
				set = append(set, h)
			}
		}
		if !w.makesRoom(t, set) {
			t.Fatalf("%v makes no room", victims)
		}
		for i := range set {
			if w.makesRoom(t, slices.Delete(slices.Clone(set), i, i+1)) {
				t.Fatalf("%s is superfluous in %v", set[i].Unit, victims)
			}
		}
		if got, want := highest(set), highest(best); got > want {
			t.Fatalf("%v has priority %d, %v has %d", victims, got, names(best), want)
		}
	})
}

// TestNoOfferIsBetterThanItsBound draws what a gang finds on its nodes. An offer that is not
// made, since its bound is no better than another offer, would not have been better.
func TestNoOfferIsBetterThanItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 9, 5)
		if err := preempt.Bounds(cluster.NewState(w.nodes...), w.unit, priority, w.holders); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSearchBeyondItsBoundsStaysMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 8, 3)
		if _, feasible := w.best(t); !feasible {
			return
		}
		victims, ok := preempt.Exhausted(cluster.NewState(w.nodes...), w.unit, priority, w.holders)
		if !ok {
			t.Fatal("nothing found")
		}
		var set []preempt.Holder
		for _, h := range w.holders {
			if slices.Contains(victims, h.Unit) {
				set = append(set, h)
			}
		}
		if !w.makesRoom(t, set) {
			t.Fatalf("%v makes no room", victims)
		}
		for i := range set {
			if w.makesRoom(t, slices.Delete(slices.Clone(set), i, i+1)) {
				t.Fatalf("%s is superfluous in %v", set[i].Unit, victims)
			}
		}
	})
}

func highest(set []preempt.Holder) int32 {
	top := int32(-1)
	for _, h := range set {
		top = max(top, h.Priority)
	}
	return top
}

func frees(nodes []*cluster.Node) []*fit.Free {
	copies := make([]*fit.Free, len(nodes))
	for i, n := range nodes {
		copies[i] = n.Free.Clone()
	}
	return copies
}

// unchanged reports whether the nodes are as they were.
func (w *world) unchanged(t *rapid.T, before []*fit.Free) {
	for i, n := range w.nodes {
		if err := n.Host.Check(n.Free); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before[i].GPU, n.Free.GPU) + cmp.Diff(before[i].CPU, n.Free.CPU) + cmp.Diff(before[i].Memory, n.Free.Memory); diff != "" {
			t.Fatalf("%s was changed: %s", n.ID, diff)
		}
	}
}

// possible checks that the plan can be carried out once the victims are gone.
func (w *world) possible(t *rapid.T, members []place.Choice, victims []preempt.Holder) {
	if len(members) != w.unit.Members {
		t.Fatalf("%d members planned, want %d", len(members), w.unit.Members)
	}
	after := map[*cluster.Node]*fit.Free{}
	for _, n := range w.nodes {
		after[n] = n.Free.Clone()
		for _, v := range victims {
			for _, p := range v.Parts {
				if p.Node == n.ID {
					if err := n.Host.Give(after[n], p.Assignment); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	for _, m := range members {
		free := after[m.Node]
		if free == nil || !m.Node.Ready || m.Node.Unschedulable || tainted(m.Node) {
			t.Fatalf("member %d goes to %s", m.Index, m.Node.ID)
		}
		for _, g := range m.Assignment.GPUs {
			if free.Unhealthy&(1<<g.Index) != 0 {
				t.Fatalf("member %d gets unhealthy GPU %d of %s", m.Index, g.Index, m.Node.ID)
			}
		}
		if err := m.Node.Host.Take(free, m.Assignment); err != nil {
			t.Fatalf("member %d: %v", m.Index, err)
		}
	}
}
