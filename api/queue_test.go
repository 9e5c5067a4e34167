package api_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

func TestAQueueIsValidatedWhole(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"a name alone":              {`{"metadata":{"name":"train"}}`, ""},
		"all fields":                {`{"metadata":{"name":"train"},"spec":{"state":"Hold","order":"Strict","maxRunningMembers":1,"maxWaitingMembers":2,"placementPolicy":"packed"}}`, ""},
		"no name":                   {`{"metadata":{}}`, "metadata.name: required"},
		"a name that is no label":   {`{"metadata":{"name":"Train"}}`, `metadata.name: "Train" is not the name of a queue`},
		"a namespace":               {`{"metadata":{"name":"q","namespace":"ml"}}`, "metadata.namespace"},
		"a state that is none":      {`{"metadata":{"name":"q"},"spec":{"state":"Paused"}}`, `spec.state: "Paused": want Open, Hold or Closed`},
		"an order that is none":     {`{"metadata":{"name":"q"},"spec":{"order":"StrictFIFO"}}`, `spec.order: "StrictFIFO": want BestEffort or Strict`},
		"a policy that is none":     {`{"metadata":{"name":"q"},"spec":{"placementPolicy":"best"}}`, `spec.placementPolicy: "best": want balanced, fragmentation, packed or spread`},
		"a bound below 0":           {`{"metadata":{"name":"q"},"spec":{"maxRunningMembers":-1}}`, "spec.maxRunningMembers: -1 is outside 0..2147483647"},
		"two faults are both named": {`{"metadata":{"name":"q"},"spec":{"state":"x","maxWaitingMembers":-2}}`, "spec.maxWaitingMembers: -2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, status := api.DecodeQueue([]byte(c.document))
			if status == nil && c.want == "" {
				return
			}
			if status == nil || status.Code != 422 {
				t.Fatalf("got %v, want 422 with %q", status, c.want)
			}
			said := status.Message
			for _, cause := range status.Causes {
				said += "\n" + cause.Field + ": " + cause.Message
			}
			if !strings.Contains(said, c.want) {
				t.Errorf("got\n%s\nwant 422 with %q", said, c.want)
			}
		})
	}
}
