package resource_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource"
)

func assignment() resource.Assignment {
	return resource.Assignment{
		CPUs:   []resource.CPUGrant{{ID: 0, Milli: 500}, {ID: 2, Milli: 1000}, {ID: 3, Milli: 1000}},
		Memory: []resource.MemoryGrant{{Node: 0, Bytes: 1 << 30}, {Node: 1, Bytes: 1 << 20}},
		GPUs:   []resource.GPUGrant{{Index: 1, UUID: "GPU-1", Milli: 1000}, {Index: 4, UUID: "GPU-4", Milli: 250}},
	}
}

func TestAssignmentVectorSumsTheGrants(t *testing.T) {
	want := resource.Vector{resource.CPU: 2500, resource.Memory: 1<<30 + 1<<20, resource.GPU: 1250}
	if diff := cmp.Diff(want, assignment().Vector()); diff != "" {
		t.Errorf("vector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(resource.Vector{}, resource.Assignment{}.Vector()); diff != "" {
		t.Errorf("vector of nothing (-want +got):\n%s", diff)
	}
	hostile := resource.Assignment{Memory: []resource.MemoryGrant{{Node: 0, Bytes: math.MaxInt64}, {Node: 1, Bytes: math.MaxInt64}}}
	if got := hostile.Vector()[resource.Memory]; got != math.MaxInt64 {
		t.Errorf("two of the greatest amount make %d", got)
	}
}

func TestAssignmentCPUSetHoldsCPUsInPartToo(t *testing.T) {
	if got := assignment().CPUSet().String(); got != "0,2-3" {
		t.Errorf("CPUs are %s, want 0,2-3", got)
	}
	if !(resource.Assignment{}).CPUSet().IsEmpty() {
		t.Error("nothing has CPUs")
	}
}

func TestAssignmentIsZeroOnlyWithoutGrants(t *testing.T) {
	a := assignment()
	for name, part := range map[string]resource.Assignment{"CPUs": {CPUs: a.CPUs}, "memory": {Memory: a.Memory}, "GPUs": {GPUs: a.GPUs}} {
		if part.IsZero() {
			t.Errorf("an assignment of %s is taken for nothing", name)
		}
	}
	if !(resource.Assignment{CPUs: []resource.CPUGrant{}}).IsZero() {
		t.Error("an assignment without grants is taken for something")
	}
}

func TestAClonedAssignmentIsIndependent(t *testing.T) {
	a := assignment()
	c := a.Clone()
	if diff := cmp.Diff(a, c); diff != "" {
		t.Fatalf("the clone differs:\n%s", diff)
	}
	c.CPUs[0].Milli, c.Memory[0].Bytes, c.GPUs[0].UUID = 1, 1, "GPU-9"
	if diff := cmp.Diff(assignment(), a); diff != "" {
		t.Errorf("the original changed (-want +got):\n%s", diff)
	}
}
