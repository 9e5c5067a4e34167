package place_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// TestPointsOutweighThePacking: each member goes to a node that no other node with room
// exceeds in points: those of preferred terms, less 100 for each taint of the effect
// PreferNoSchedule that is not tolerated.
func TestPointsOutweighThePacking(t *testing.T) {
	avoided := 0
	rapid.Check(t, func(t *rapid.T) {
		nodes, u := drawNodes(t), drawUnit(t)
		spec := constraint.Spec{}
		tolerated := map[string]bool{}
		for _, key := range []string{"s1", "s2"} {
			if rapid.IntRange(0, 3).Draw(t, "tolerates "+key) == 0 {
				tolerated[key] = true
				spec.Tolerations = append(spec.Tolerations, constraint.Toleration{Key: key, AnyValue: true, Effect: rapid.SampledFrom([]constraint.Effect{"", constraint.PreferNoSchedule}).Draw(t, "effect")})
			}
		}
		weight := int64(0)
		if rapid.Bool().Draw(t, "prefers") {
			weight = int64(rapid.SampledFrom([]int{50, 100}).Draw(t, "weight"))
			spec.Preferred = []constraint.Preference{{Weight: int32(weight), Term: expressions("zone", "In", "y")}}
		}
		u.Constraints = constraint.Compile(spec)
		points := map[resource.NodeID]int64{}
		for _, n := range nodes {
			labels := map[string]string{"zone": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "zone")}
			if labels["zone"] == "y" {
				points[n.ID] += weight
			}
			var taints []constraint.Taint
			for _, key := range []string{"s1", "s2"} {
				if rapid.IntRange(0, 2).Draw(t, "tainted") == 0 {
					taints = append(taints, constraint.Taint{Key: key, Effect: constraint.PreferNoSchedule})
					if !tolerated[key] {
						points[n.ID] -= 100
					}
				}
			}
			mark([]*cluster.Node{n}, labels, taints...)
		}
		before := frees(nodes)
		members, ok := place.Place(cluster.NewState(nodes...), u)
		if !ok {
			return
		}
		for i, m := range members {
			for at, n := range nodes {
				var a resource.Assignment
				if !n.Ready || n.Unschedulable || !n.Host.Assign(before[at], u.Request, &a) {
					continue
				}
				if points[n.ID] > points[m.Node.ID] {
					t.Fatalf("member %d goes to %s with %d points, and %s with %d has room", i, m.Node.ID, points[m.Node.ID], n.ID, points[n.ID])
				}
				if points[n.ID] < points[m.Node.ID] {
					avoided++
				}
			}
			at := int(m.Node.ID[0] - 'a')
			if err := m.Node.Host.Take(before[at], m.Assignment); err != nil {
				t.Fatal(err)
			}
		}
	})
	if avoided == 0 {
		t.Error("no node was avoided")
	}
}
