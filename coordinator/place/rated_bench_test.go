package place_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// learnedFrom is a Learner of a mix of 48 shapes.
func learnedFrom() *place.Learner {
	var learner place.Learner
	for i := range 48 {
		u := place.Unit{Members: 64, Request: resource.Request{CPU: resource.Millicores(1000 * (1 + i%12)), Memory: resource.Bytes(1+i%5) * 8 * gib}}
		if i%2 == 0 {
			u.Request.GPUShare = resource.Milli(100 + 40*(i%20))
		} else {
			u.Request.GPUs = 1 << (i % 4)
		}
		learner.Observe(&u)
	}
	return &learner
}

// BenchmarkDefault places one member by the default policy among nodes of which no two
// are alike; each decision is kept until the next one, so one node changes each time.
func BenchmarkDefault(b *testing.B) {
	team := constraint.Taint{Key: "team", Value: "vision", Effect: constraint.NoSchedule}
	for _, n := range []int{1000, 10_000} {
		nodes := dgx(b, n)
		wear(b, nodes)
		var table constraint.Table
		for i, v := range nodes {
			var taints []constraint.Taint
			if i%10 == 0 {
				taints = []constraint.Taint{team}
			}
			v.Labels = table.Intern(map[string]string{"name": string(v.ID), "zone": string(rune('a' + i%3)), "rack": fmt.Sprint(i / 40)}, taints)
		}
		state := cluster.NewState(nodes...)
		learner := learnedFrom()
		prefers := constraint.Compile(constraint.Spec{
			Preferred: []constraint.Preference{{Weight: 1, Term: expressions("zone", "In", "b")}}, Tolerations: []constraint.Toleration{{Key: "team", AnyValue: true}},
		})
		spread := &constraint.Subject{Namespace: "a", Group: "web", Labels: constraint.LabelsOf(map[string]string{"app": "web"}), Relations: constraint.CompileRelations(constraint.RelationSpec{
			Spread: []constraint.Spread{{TopologyKey: "zone", MaxSkew: 1, Required: true, Selector: constraint.Selector{OwnGroup: true}}},
		})}
		for _, bench := range []struct {
			name string
			unit place.Unit
		}{
			{"1-gpu", place.Unit{Members: 1, Request: oneGPU}},
			{"share", place.Unit{Members: 1, Request: resource.Request{GPUShare: 300, CPU: 2000}}},
			{"preferred-tolerated", place.Unit{Members: 1, Request: oneGPU, Constraints: prefers}},
			{"spread", place.Unit{Members: 1, Request: oneGPU, Subject: spread}},
		} {
			bench.unit.Policy = learner.Policy(place.NameFragmentation, state)
			b.Run(fmt.Sprintf("%s/nodes=%d", bench.name, n), func(b *testing.B) {
				mark, open := cluster.Mark{}, false
				for b.Loop() {
					if open {
						state.Rollback(mark)
					}
					mark, open = state.Checkpoint(), true
					if _, ok := place.Place(state, bench.unit); !ok {
						b.Fatal("no place")
					}
				}
				if open {
					state.Rollback(mark)
				}
			})
		}
		b.Run(fmt.Sprintf("soft-taints/nodes=%d", n), func(b *testing.B) { // on nodes of their own
			worn := dgx(b, n)
			wear(b, worn)
			for i, v := range worn {
				if i%10 == 0 {
					v.Labels = table.Intern(nil, []constraint.Taint{{Key: "old", Effect: constraint.PreferNoSchedule}})
				}
			}
			state := cluster.NewState(worn...)
			u := place.Unit{Members: 1, Request: oneGPU, Policy: learner.Policy(place.NameFragmentation, state)}
			for b.Loop() {
				mark := state.Checkpoint()
				if _, ok := place.Place(state, u); !ok {
					b.Fatal("no place")
				}
				state.Rollback(mark)
			}
		})
		b.Run(fmt.Sprintf("new-shape/nodes=%d", n), func(b *testing.B) {
			u := place.Unit{Members: 1, Request: oneGPU, Policy: learner.Policy(place.NameFragmentation, state)}
			for b.Loop() {
				u.Request.Memory++
				mark := state.Checkpoint()
				if _, ok := place.Place(state, u); !ok {
					b.Fatal("no place")
				}
				state.Rollback(mark)
			}
		})
	}
}
