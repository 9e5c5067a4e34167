package admission_test

import (
	"maps"
	"testing"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

func TestTheAllocatablePartOfANode(t *testing.T) {
	found := resource.Vector{resource.CPU: 4000, resource.GPU: 8000, resource.MIG("1g.10gb"): 7}
	pool := &resource.Assignment{
		GPUs: []resource.GPUGrant{{UUID: "GPU-a", Milli: 1000}, {UUID: "GPU-b", Milli: 1000}}, MIG: []resource.MIGGrant{{UUID: "MIG-a", Profile: "1g.10gb"}},
	}
	for name, c := range map[string]struct {
		lowered resource.Vector
		pool    *resource.Assignment
		want    resource.Vector
	}{
		"all that was found":                   {want: found},
		"less the kubelet's pool":              {pool: pool, want: resource.Vector{resource.CPU: 4000, resource.GPU: 6000, resource.MIG("1g.10gb"): 6}},
		"as an operator has lowered it":        {lowered: resource.Vector{resource.GPU: 5000}, want: resource.Vector{resource.CPU: 4000, resource.GPU: 5000, resource.MIG("1g.10gb"): 7}},
		"the pool is a part of the rest":       {resource.Vector{resource.GPU: 5000}, pool, resource.Vector{resource.CPU: 4000, resource.GPU: 5000, resource.MIG("1g.10gb"): 6}},
		"lowered less than by the pool":        {resource.Vector{resource.GPU: 7000}, pool, resource.Vector{resource.CPU: 4000, resource.GPU: 6000, resource.MIG("1g.10gb"): 6}},
		"a pool of profiles nobody registered": {pool: &resource.Assignment{MIG: []resource.MIGGrant{{UUID: "MIG-b", Profile: "7g.80gb"}}}, want: found},
	} {
		t.Run(name, func(t *testing.T) {
			spec := record.NodeSpec{Allocatable: maps.Clone(found), Lowered: c.lowered}
			if got := admission.Allocatable(spec, c.pool); !maps.Equal(got, c.want) {
				t.Errorf("allocatable is %v, want %v", got, c.want)
			}
			if !maps.Equal(spec.Allocatable, found) {
				t.Error("the specification was changed")
			}
		})
	}
}
