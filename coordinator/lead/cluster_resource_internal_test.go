package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Units that ask for other amounts of a resource of the cluster are of other classes,
// since the refusal of one says nothing about the other. Their demands of nodes are equal.
func TestAClassHasOneAmountOfAClusterResource(t *testing.T) {
	unitOf := func(requests string) *unit {
		doc, status := api.DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":` + requests + `}}}`))
		if status != nil {
			t.Fatal(status)
		}
		u, status := newUnit(Namespace{Tenant: "ml"}, record.Unit{UID: "u", Kind: record.AllocUnit, Namespace: "ml", Name: "a", Members: 3}, doc.Spec, nil, "")
		if status != nil {
			t.Fatal(status)
		}
		return u
	}
	none, one, two := unitOf(`{"cpu":"1"}`), unitOf(`{"cpu":"1","example.com/seat":"1"}`), unitOf(`{"cpu":"1","example.com/seat":"2"}`)
	if none.Shape != one.Shape || one.Shape != two.Shape {
		t.Errorf("shapes %q, %q and %q differ", none.Shape, one.Shape, two.Shape)
	}
	if none.chargesKey() == one.chargesKey() || one.chargesKey() == two.chargesKey() {
		t.Errorf("charge keys %q, %q and %q are not all different", none.chargesKey(), one.chargesKey(), two.chargesKey())
	}
	if again := unitOf(`{"example.com/seat":"2","cpu":"1000m"}`); again.chargesKey() != two.chargesKey() {
		t.Errorf("equal units have the charge keys %q and %q", again.chargesKey(), two.chargesKey())
	}
	if got := two.Charge.Request["example.com/seat"]; got != 6 {
		t.Errorf("3 members of 2 seats are charged %d", got)
	}
}

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
