package api

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource"
)

func TestNamesWithADomainAreRequestedBesideTheOthers(t *testing.T) {
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
		"more than one member may":    {`{"cpu":"1","example.com/seat":"2000000000000000"}`, `{}`, nil, "the most one member may ask for"},
		"a name without a domain":     {`{"cpu":"1","disk":"1"}`, `{}`, nil, "unknown resource"},
		"a misspelt name of a device": {`{"cpu":"1","nvidia.com/gpus":"1"}`, `{}`, nil, `is "nvidia.com/gpu" meant?`},
		"nothing of any node":         {`{"example.com/seat":"1"}`, `{}`, resource.Vector{"example.com/seat": 1}, ""},
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
			if diff := cmp.Diff(c.want, ForeignRequest(a.Spec)); diff != "" {
				t.Errorf("of the cluster (-want +got):\n%s", diff)
			}
			r, status := MemberRequest(a.Spec)
			if status != nil {
				t.Fatal(status)
			}
			counts := r.Counts.Vector()
			if cluster := SplitForeign(&r, a.Spec, nil); !maps.Equal(cluster, c.want) || r.Counts != "" {
				t.Errorf("of the cluster %v, and of the nodes %q", cluster, r.Counts)
			}
			r.Counts = resource.CountsOf(counts)
			if cluster := SplitForeign(&r, a.Spec, c.want.Names()); len(cluster) != 0 || !maps.Equal(r.Counts.Vector(), counts) {
				t.Errorf("of the cluster %v, and of the nodes %q", cluster, r.Counts)
			}
		})
	}
}
