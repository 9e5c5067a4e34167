package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource"
)

func TestClusterResourcesAreRequestedBesideThoseOfNodes(t *testing.T) {
	for name, c := range map[string]struct {
		requests, limits string
		want             resource.Vector
		refused          string
	}{
		"none":                        {`{"cpu":"1"}`, `{}`, nil, ""},
		"a name with a domain":        {`{"cpu":"1","example.com/seat":"2"}`, `{}`, resource.Vector{"example.com/seat": 2}, ""},
		"a limit alone":               {`{"cpu":"1"}`, `{"example.com/seat":"2"}`, resource.Vector{"example.com/seat": 2}, ""},
		"nothing of it":               {`{"cpu":"1","example.com/seat":"0"}`, `{}`, nil, ""},
		"a limit above the request":   {`{"cpu":"1","example.com/seat":"1"}`, `{"example.com/seat":"2"}`, nil, "request and limit must be equal"},
		"a fraction":                  {`{"cpu":"1","example.com/seat":"1.5"}`, `{}`, nil, "is not a whole number"},
		"a thousandth":                {`{"cpu":"1","example.com/seat":"500m"}`, `{}`, nil, "is not a whole number"},
		"a negative amount":           {`{"cpu":"1","example.com/seat":"-1"}`, `{}`, nil, "example.com/seat"},
		"more than one member may":    {`{"cpu":"1","example.com/seat":"2000000000"}`, `{}`, nil, "the most one member may ask for"},
		"a name without a domain":     {`{"cpu":"1","disk":"1"}`, `{}`, nil, "unknown resource"},
		"a misspelt name of a device": {`{"cpu":"1","nvidia.com/gpus":"1"}`, `{}`, nil, `is "nvidia.com/gpu" meant?`},
		"nothing of any node":         {`{"example.com/seat":"1"}`, `{}`, nil, "nothing is requested"},
	} {
		t.Run(name, func(t *testing.T) {
			a, status := DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":` + c.requests + `,"limits":` + c.limits + `}}}`))
			if c.refused != "" {
				if status == nil || status.Code != 422 || !strings.Contains(status.Message, c.refused) {
					t.Fatalf("got %v, want 422 %q", status, c.refused)
				}
				return
			}
			if status != nil {
				t.Fatal(status)
			}
			if diff := cmp.Diff(c.want, ClusterRequest(a.Spec)); diff != "" {
				t.Errorf("of the cluster (-want +got):\n%s", diff)
			}
			if r, status := MemberRequest(a.Spec); status != nil || r != (resource.Request{CPU: 1000}) {
				t.Errorf("of the node: %+v, %v", r, status)
			}
		})
	}
}
