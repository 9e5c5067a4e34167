package constraint_test

import (
	"testing"

	"github.com/musterd/muster/constraint"
)

// full has every kind of constraint; each refuses some of the labels below.
var full = constraint.Spec{
	NodeSelector: map[string]string{"zone": "a", "kubernetes.io/arch": "amd64"},
	Required:     []constraint.Term{{{Key: "generation", Operator: constraint.Gt, Values: []string{"8"}}}},
	Preferred:    []constraint.Preference{{Weight: 3, Term: constraint.Term{{Key: "rack", Operator: constraint.In, Values: []string{"r1", "r2"}}}}},
	Tolerations:  []constraint.Toleration{{Key: "team", Value: "vision"}},
}

func labels(zone, generation string) map[string]string {
	return map[string]string{"kubernetes.io/hostname": "node-00017", "kubernetes.io/arch": "amd64", "zone": zone, "rack": "r2", "generation": generation}
}

// nodes are those that full allows, and refuses by taint, selector and affinity.
func nodes() map[string]*constraint.Labels {
	var t constraint.Table
	return map[string]*constraint.Labels{
		"allowed":             t.Intern(labels("a", "9"), []constraint.Taint{{Key: "team", Value: "vision", Effect: constraint.NoSchedule}}),
		"refused-by-taint":    t.Intern(labels("a", "9"), []constraint.Taint{{Key: "team", Value: "nlp", Effect: constraint.NoSchedule}}),
		"refused-by-selector": t.Intern(labels("b", "9"), nil),
		"refused-by-affinity": t.Intern(labels("a", "new"), nil),
	}
}

func TestVerdictsAllocateNothing(t *testing.T) {
	set := constraint.Compile(full)
	for name, l := range nodes() {
		if n := testing.AllocsPerRun(100, func() { set.Allows(l); set.Preference(l) }); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
		if got := set.Allows(l); got != (name == "allowed") {
			t.Errorf("%s: allowed %t", name, got)
		}
	}
}

func BenchmarkAllows(b *testing.B) {
	set := constraint.Compile(full)
	for name, l := range nodes() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set.Allows(l)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		constraint.Compile(full)
	}
}

func BenchmarkIntern(b *testing.B) {
	b.ReportAllocs()
	var table constraint.Table
	same := labels("a", "9")
	table.Intern(same, nil)
	for b.Loop() {
		table.Release(table.Intern(same, nil))
	}
}
