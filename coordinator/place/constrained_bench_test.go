package place_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
)

// labelled are empty hosts, each with its name among five labels.
func labelled(tb testing.TB, n int, taints ...constraint.Taint) []*cluster.Node {
	tb.Helper()
	nodes := dgx(tb, n)
	var table constraint.Table
	for _, v := range nodes {
		v.Labels = table.Intern(map[string]string{
			"kubernetes.io/hostname": string(v.ID), "muster.dev/node": string(v.ID), "zone": "a", "rack": "r7", "gen": "9",
		}, taints)
	}
	return nodes
}

func BenchmarkPlaceConstrained(b *testing.B) {
	team := constraint.Taint{Key: "team", Value: "vision", Effect: constraint.NoSchedule}
	for _, n := range []int{1000, 10_000} {
		for _, bench := range []struct {
			name   string
			spec   constraint.Spec
			taints []constraint.Taint
			want   bool
		}{
			{"none", constraint.Spec{}, nil, true},
			{"selector", constraint.Spec{NodeSelector: map[string]string{"zone": "a", "rack": "r7"}}, nil, true},
			{"selector-refused", constraint.Spec{NodeSelector: map[string]string{"zone": "b"}}, nil, false},
			{"selector-name", constraint.Spec{NodeSelector: map[string]string{"muster.dev/node": "node-00700"}}, nil, true},
			{"required-refused", constraint.Spec{Required: []constraint.Term{expressions("gen", "Gt", "9")}}, nil, false},
			{"preferred-by-one", constraint.Spec{Preferred: []constraint.Preference{{Weight: 1, Term: expressions("muster.dev/node", "In", "node-00700")}}}, nil, true},
			{"taints-refused", constraint.Spec{}, []constraint.Taint{team}, false},
			{"tolerated", constraint.Spec{Tolerations: []constraint.Toleration{{Key: "team", AnyValue: true}}}, []constraint.Taint{team}, true},
			{"required-gt", constraint.Spec{Required: []constraint.Term{expressions("gen", "Gt", "8")}}, nil, true},
			{"preferred", constraint.Spec{Preferred: []constraint.Preference{{Weight: 1, Term: expressions("zone", "In", "a", "b")}}}, nil, true},
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", bench.name, n), func(b *testing.B) {
				u := place.Unit{Members: 1, Request: oneGPU, Constraints: constraint.Compile(bench.spec)}
				benchmarkPlace(b, labelled(b, n, bench.taints...), u, bench.want)
			})
		}
	}
}
