package constraint_test

import (
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/resource"
)

func TestRefusalsSayWhatIsWanted(t *testing.T) {
	var table constraint.Table
	node := table.Intern(map[string]string{"zone": "a", "generation": "8", "bare": ""}, nil)
	affinity := func(terms ...constraint.Term) constraint.Spec { return constraint.Spec{Required: terms} }
	zone := constraint.Expression{Key: "zone", Operator: constraint.In, Values: []string{"c", "b"}}
	for name, c := range map[string]struct {
		spec constraint.Spec
		on   *constraint.Labels
		want resource.Reason
	}{
		"another value": {
			constraint.Spec{NodeSelector: map[string]string{"zone": "b"}}, node,
			resource.Reason{Code: resource.ReasonNodeSelector, Detail: "label zone is a, want b"},
		},
		"a label that the node lacks": {
			constraint.Spec{NodeSelector: map[string]string{"gpu-type": "h100"}}, node,
			resource.Reason{Code: resource.ReasonNodeSelector, Detail: "label gpu-type is not set, want h100"},
		},
		"the first label by name": {
			constraint.Spec{NodeSelector: map[string]string{"zone": "b", "rack": "7"}}, node,
			resource.Reason{Code: resource.ReasonNodeSelector, Detail: "label rack is not set, want 7"},
		},
		"an empty value": {
			constraint.Spec{NodeSelector: map[string]string{"bare": "x"}}, node,
			resource.Reason{Code: resource.ReasonNodeSelector, Detail: `label bare is "", want x`},
		},
		"one term of the affinity": {
			affinity(constraint.Term{zone}), node,
			resource.Reason{Code: resource.ReasonNodeAffinity, Detail: "label zone is a, node affinity wants zone In (b, c)"},
		},
		"the second expression of a term": {
			affinity(constraint.Term{{Key: "zone", Operator: constraint.Exists}, {Key: "generation", Operator: constraint.Gt, Values: []string{"8"}}}), node,
			resource.Reason{Code: resource.ReasonNodeAffinity, Detail: "label generation is 8, node affinity wants generation Gte 9"},
		},
		"two terms": {
			affinity(constraint.Term{zone}, constraint.Term{{Key: "zone", Operator: constraint.DoesNotExist}}), node,
			resource.Reason{Code: resource.ReasonNodeAffinity, Detail: "none of the 2 terms of the node affinity matches"},
		},
		"an affinity that nothing can match": {
			affinity(constraint.Term{{Key: "zone", Operator: constraint.In}}), node,
			resource.Reason{Code: resource.ReasonNodeAffinity, Detail: "the node affinity matches no node"},
		},
		"many values": {
			affinity(constraint.Term{{Key: "zone", Operator: constraint.In, Values: []string{"1", "2", "3", "4", "5", "6", "7"}}}), node,
			resource.Reason{Code: resource.ReasonNodeAffinity, Detail: "label zone is a, node affinity wants zone In (1, 2, 3, 4, 5 and 2 more)"},
		},
		"a taint": {
			constraint.Spec{}, table.Intern(nil, []constraint.Taint{{Key: "team", Value: "nlp", Effect: constraint.NoSchedule}}),
			resource.Reason{Code: resource.ReasonTaint, Detail: "taint team=nlp:NoSchedule is not tolerated"},
		},
		"a taint without a value": {
			constraint.Spec{}, table.Intern(nil, []constraint.Taint{{Key: "down", Effect: constraint.NoExecute}}),
			resource.Reason{Code: resource.ReasonTaint, Detail: "taint down:NoExecute is not tolerated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := constraint.Compile(c.spec).Refusal(c.on); got == nil || *got != c.want {
				t.Errorf("refused with %v, want %v", got, c.want)
			}
		})
	}
}
