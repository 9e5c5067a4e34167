package form

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/place"
)

func TestConstraintsOfTakesEverySection(t *testing.T) {
	expressions := func(operator string, values ...string) api.NodeSelectorTerm {
		return api.NodeSelectorTerm{MatchExpressions: []api.MatchExpression{{Key: "zone", Operator: operator, Values: values}}}
	}
	exists := constraint.Term{{Key: "zone", Operator: constraint.Exists}}
	in := constraint.Term{{Key: "zone", Operator: constraint.In, Values: []string{"a", "b"}}}
	s := api.Scheduling{
		NodeSelector: map[string]string{"a": "b"},
		Tolerations: []api.Toleration{
			{Key: "k", Value: "v", Effect: "NoSchedule"}, {Key: "k", Operator: "Exists"}, {Key: "k", Operator: "Equal", Value: "w"},
		},
		Affinity: &api.Affinity{NodeAffinity: &api.NodeAffinity{
			Required:  &api.NodeSelectorTerms{NodeSelectorTerms: []api.NodeSelectorTerm{expressions("Exists"), expressions("In", "a", "b")}},
			Preferred: []api.PreferredTerm{{Weight: 3, Preference: expressions("In", "a", "b")}},
		}},
	}
	want := constraint.Spec{
		NodeSelector: map[string]string{"a": "b"}, Required: []constraint.Term{exists, in}, Preferred: []constraint.Preference{{Weight: 3, Term: in}},
		Tolerations: []constraint.Toleration{{Key: "k", Value: "v", Effect: constraint.NoSchedule}, {Key: "k", AnyValue: true}, {Key: "k", Value: "w"}},
	}
	if diff := cmp.Diff(want, Constraints(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, empty := range map[string]api.Scheduling{
		"no section": {}, "no node affinity": {Affinity: &api.Affinity{}}, "an empty node affinity": {Affinity: &api.Affinity{NodeAffinity: &api.NodeAffinity{}}},
	} {
		if set := constraint.Compile(Constraints(empty)); set != nil {
			t.Errorf("%s: %s", name, set.Key())
		}
	}
}

// TestShapesAreEqualForDemandsThatFitTogether: the order in which a client writes
// its constraints makes no other shape, and another constraint does.
func TestShapesAreEqualForDemandsThatFitTogether(t *testing.T) {
	shape := func(values ...string) string {
		term := api.NodeSelectorTerm{MatchExpressions: []api.MatchExpression{{Key: "zone", Operator: "In", Values: values}}}
		affinity := api.NodeAffinity{Required: &api.NodeSelectorTerms{NodeSelectorTerms: []api.NodeSelectorTerm{term}}}
		spec := Constraints(api.Scheduling{Affinity: &api.Affinity{NodeAffinity: &affinity}})
		return shapeOf(place.Unit{Members: 1, Constraints: constraint.Compile(spec)})
	}
	if a, b := shape("a", "b"), shape("b", "a"); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if a, b := shape("a", "b"), shape("a"); a == b {
		t.Errorf("both are %s", a)
	}
}

func TestOnlyALimitThatIsEnforcedIsTerminating(t *testing.T) {
	seconds := int64(60)
	limited := &api.Job{}
	limited.Spec.ActiveDeadlineSeconds = &seconds
	for name, c := range map[string]struct {
		spec api.AllocationSpec
		job  *api.Job
		want bool
	}{
		"the ttl of an allocation": {api.AllocationSpec{TTL: "2s"}, nil, true},
		"the ttl of a template":    {api.AllocationSpec{TTL: "2s"}, &api.Job{}, true},
		"a deadline":               {api.AllocationSpec{}, limited, true},
		"no limit":                 {api.AllocationSpec{}, &api.Job{}, false},
	} {
		if got := isTimeLimited(&c.spec, c.job); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
