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
				Kind: "Explanation", Format: api.ExplanationFormat, Object: "Job", Namespace: "ns", Name: "x", Phase: api.Queued, Summary: "s", Members: 1,
				Reason:              resource.Reason{Code: "AwaitsVictims", Detail: "d"},
				Queue:               &api.QueuePlace{Name: "q", Position: 1, Length: 2, OverallPosition: 3, OverallLength: 4},
				Nomination:          &api.Nomination{WaitingFor: "w", Victims: []api.Victim{{Unit: "ns/alloc/v/0", Members: 1, GPUs: "500m", Freed: true}}},
				PreemptionBlockedBy: "b",
			},
			`{"kind":"Explanation","format":2,"object":"Job","namespace":"ns","name":"x","phase":"Queued","summary":"s",` +
				`"reason":{"code":"AwaitsVictims","detail":"d"},"members":1,"fit":0,"running":0,` +
				`"queue":{"name":"q","position":1,"length":2,"overallPosition":3,"overallLength":4},` +
				`"nomination":{"waitingFor":"w","victims":[{"unit":"ns/alloc/v/0","priority":0,"members":1,"gpus":"500m","freed":true}]},` +
				`"preemptionBlockedBy":"b","attempts":0}`,
		},
		"an explanation of a unit that no node takes": {
			api.Explanation{
				Kind: "Explanation", Format: api.ExplanationFormat, Object: "Job", Namespace: "ns", Name: "x", Phase: api.Queued, Summary: "s", Members: 1,
				Reason:  resource.Reason{Code: "Insufficient", Resource: resource.GPU, Want: 9000},
				Outlook: &api.Outlook{Can: api.CanNever, Message: "m"}, Help: []api.Help{{Code: "FewerGPUs", Message: "h"}},
				Nodes: []api.NodeGroup{{Count: 2, Message: "m", Names: []resource.NodeID{"n1", "n2"}}},
			},
			`{"kind":"Explanation","format":2,"object":"Job","namespace":"ns","name":"x","phase":"Queued","summary":"s",` +
				`"reason":{"code":"Insufficient","resource":"nvidia.com/gpu","want":"9","have":"0","short":"9"},` +
				`"outlook":{"can":"Never","message":"m"},"help":[{"code":"FewerGPUs","message":"h"}],` +
				`"nodes":[{"count":2,"fit":0,"message":"m","names":["n1","n2"]}],"members":1,"fit":0,"running":0,"attempts":0}`,
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
