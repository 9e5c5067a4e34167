package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

func TestARequestNamesAResourceOfTheCluster(t *testing.T) {
	x := newScene(t)
	for name, spec := range map[string]api.ResourceSpec{
		"example.com/seat": {Scope: "cluster"}, "example.com/fpga": {}, "example.com/cache": {Scope: "cluster", Kind: "bytes"}, "example.com/name": {Kind: "unique"},
	} {
		x.objects.Resources.Set(api.Resource{Metadata: api.ObjectMeta{Name: name}, Spec: spec}, 1)
	}
	for name, want := range map[resource.Name]string{
		"example.com/seat":  "",
		"example.com/seats": `spec.resources.requests["example.com/seats"]: unknown resource; is "example.com/seat" meant?`,
		"other.org/thing":   `spec.resources.requests["other.org/thing"]: unknown resource: muster get resources lists the names; a node may declare one, and an operator may create one of scope cluster`,
		"example.com/fpga":  "",
		"example.com/cache": "",
		"example.com/name":  `spec.resources.requests["example.com/name"]: the resource is of kind unique; this version charges resources of kind count and bytes`,
	} {
		status := x.judgeNames("spec", api.AllocationSpec{Resources: api.Requirements{Requests: map[resource.Name]string{"cpu": "1", name: "1"}}})
		if status != nil {
			if got := status.Message; got != want || status.Code != 422 {
				t.Errorf("%s: %d %q, want 422 %q", name, status.Code, got, want)
			}
		} else if want != "" {
			t.Errorf("%s is taken, want %q", name, want)
		}
	}
}
