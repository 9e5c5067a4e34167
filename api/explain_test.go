package api_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// TestAnswersHaveTheseNames keeps the names of the fields that clients read in
// explanations: renaming a Go field must not rename a JSON field.
func TestAnswersHaveTheseNames(t *testing.T) {
	gpus := map[resource.Name]string{resource.GPU: "2"}
	placements := []api.QuotaPlacement{{
		Tree: "Lab", Group: "a", Request: gpus, Node: "all", BorrowsFrom: []string{"b"}, ReclaimableBy: []string{"b"},
	}}
	cases := map[string]struct {
		document any
		want     string
	}{
		"an explanation of quota": {
			api.QuotaExplanation{Kind: "QuotaExplanation", Consumer: "ns/x", Phase: api.Running, Placements: placements, Summary: "s"},
			`{"kind":"QuotaExplanation","consumer":"ns/x","phase":"Running","placements":[{"tree":"Lab","group":"a","request":{"nvidia.com/gpu":"2"},` +
				`"priority":0,"node":"all","borrowsFrom":["b"],"reclaimableBy":["b"]}],"summary":"s"}`,
		},
		"a dry run": {
			api.QuotaDryRun{Kind: "QuotaDryRun", Admitted: true, Placements: placements[:1], Victims: []string{"v"}, Moved: []string{"m"}, Summary: "s"},
			`{"kind":"QuotaDryRun","admitted":true,"placements":[{"tree":"Lab","group":"a","request":{"nvidia.com/gpu":"2"},` +
				`"priority":0,"node":"all","borrowsFrom":["b"],"reclaimableBy":["b"]}],"victims":["v"],"moved":["m"],"summary":"s"}`,
		},
		"an explanation of a unit that others make room for": {
			api.Explanation{
				Kind: "Explanation", Namespace: "ns", Name: "x", Phase: api.Queued, Summary: "s", Members: 1,
				Nomination:          &api.Nomination{WaitingFor: "w", Victims: []api.Victim{{Unit: "ns/alloc/v/0", Members: 1, Freed: true}}},
				PreemptionBlockedBy: "b",
			},
			`{"kind":"Explanation","namespace":"ns","name":"x","phase":"Queued","summary":"s","members":1,"fit":0,` +
				`"nomination":{"waitingFor":"w","victims":[{"unit":"ns/alloc/v/0","priority":0,"members":1,"freed":true}]},"preemptionBlockedBy":"b"}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(c.document)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}
