package lead

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
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
	if diff := cmp.Diff(want, constraintsOf(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, empty := range map[string]api.Scheduling{
		"no section": {}, "no node affinity": {Affinity: &api.Affinity{}}, "an empty node affinity": {Affinity: &api.Affinity{NodeAffinity: &api.NodeAffinity{}}},
	} {
		if set := constraint.Compile(constraintsOf(empty)); set != nil {
			t.Errorf("%s: %s", name, set.Key())
		}
	}
}

// TestTheViewHoldsLabelsOfItsNodesAlone: a node that changes its labels for ever,
// and one that is deleted, leave nothing in the view's table.
func TestTheViewHoldsLabelsOfItsNodesAlone(t *testing.T) {
	v := view{nodes: map[resource.NodeID]*node{}, state: cluster.NewState()}
	a, b := v.node("a"), v.node("b")
	for rev, zone := range []string{"x", "y", "x", "z"} {
		for _, n := range []*node{a, b} {
			n.setSpec(record.NodeSpec{Labels: map[string]string{"zone": zone}, Taints: []record.Taint{{Key: zone, Effect: "NoSchedule"}}}, resource.Revision(rev+1))
		}
		if v.state.LabelSets() != 2 { // each has its name for a label
			t.Errorf("zone %s: %d labels for two nodes", zone, v.state.LabelSets())
		}
		if got := a.view.Labels.Values()["zone"]; got != zone {
			t.Errorf("zone %q, want %q", got, zone)
		}
	}
	v.removeNode("a")
	v.removeNode("a")
	if v.state.LabelSets() != 1 {
		t.Errorf("%d labels for one node", v.state.LabelSets())
	}
}

// TestShapesAreEqualForDemandsThatFitTogether: the order in which a client writes
// its constraints makes no other shape, and another constraint does.
func TestShapesAreEqualForDemandsThatFitTogether(t *testing.T) {
	shape := func(values ...string) string {
		term := api.NodeSelectorTerm{MatchExpressions: []api.MatchExpression{{Key: "zone", Operator: "In", Values: values}}}
		affinity := api.NodeAffinity{Required: &api.NodeSelectorTerms{NodeSelectorTerms: []api.NodeSelectorTerm{term}}}
		spec := constraintsOf(api.Scheduling{Affinity: &api.Affinity{NodeAffinity: &affinity}})
		return shapeOf(place.Unit{Members: 1, Constraints: constraint.Compile(spec)})
	}
	if a, b := shape("a", "b"), shape("b", "a"); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if a, b := shape("a", "b"), shape("a"); a == b {
		t.Errorf("both are %s", a)
	}
}
