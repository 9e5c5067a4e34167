package place_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// unremembered hides from the State that it may remember a policy's scores.
type unremembered struct{ place.Policy }

// A search with remembered ratings chooses as a search that rates every node anew,
// whatever was asked before and whatever has changed since; soft taints and preferences
// included.
func TestRememberedRatingsChangeNoChoice(t *testing.T) {
	hosts := dgx(t, 24)
	policies := learnedFrom()
	rapid.Check(t, func(t *rapid.T) {
		var table constraint.Table
		var nodes []*cluster.Node
		for i, of := range hosts[:rapid.IntRange(1, len(hosts)).Draw(t, "nodes")] {
			v := &cluster.Node{ID: of.ID, Ready: true, Host: of.Host, Free: of.Host.NewFree()}
			var taints []constraint.Taint
			if rapid.IntRange(0, 3).Draw(t, "taint") == 0 {
				taints = append(taints, constraint.Taint{Key: "k", Effect: rapid.SampledFrom([]constraint.Effect{constraint.NoSchedule, constraint.PreferNoSchedule}).Draw(t, "effect")})
			}
			v.Labels = table.Intern(map[string]string{"zone": fmt.Sprint(i % 3)}, taints)
			nodes = append(nodes, v)
		}
		state := cluster.NewState(nodes...)
		policy := policies.Policy(place.NameFragmentation, state)
		constraints := []*constraint.Set{nil, constraint.Compile(constraint.Spec{
			Preferred: []constraint.Preference{{Weight: 1, Term: expressions("zone", "In", "1")}},
		}), constraint.Compile(constraint.Spec{Tolerations: []constraint.Toleration{{Key: "k", AnyValue: true}}})}
		for range rapid.IntRange(1, 25).Draw(t, "units") {
			r := resource.Request{CPU: resource.Millicores(500 * rapid.IntRange(0, 60).Draw(t, "cpu")), Memory: resource.Bytes(rapid.IntRange(0, 40).Draw(t, "memory")) * gib}
			switch rapid.IntRange(0, 2).Draw(t, "devices") {
			case 0:
				r.GPUs = rapid.IntRange(1, 8).Draw(t, "gpus")
			case 1:
				r.GPUShare = resource.Milli(100 * rapid.IntRange(1, 9).Draw(t, "share"))
			}
			if r.CPU == 0 && r.Memory == 0 && r.GPUMilli() == 0 {
				continue
			}
			u := place.Unit{Members: rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "members"), Request: r, Constraints: rapid.SampledFrom(constraints).Draw(t, "constraints")}
			mark := state.Checkpoint()
			u.Policy = unremembered{policy}
			want, fits := place.Place(state, u)
			state.Rollback(mark)
			mark = state.Checkpoint()
			u.Policy = policy
			got, ok := place.Place(state, u)
			if ok != fits || len(got) != len(want) {
				t.Fatalf("%+v: %d members are placed, want %d", r, len(got), len(want))
			}
			for i := range got {
				if got[i].Node != want[i].Node {
					t.Fatalf("%+v: member %d goes to %s, want %s", r, i, got[i].Node.ID, want[i].Node.ID)
				}
			}
			if rapid.Bool().Draw(t, "undo") {
				state.Rollback(mark)
			} else {
				state.Keep(mark)
			}
		}
	})
}
