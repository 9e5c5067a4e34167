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
		Hugepages: []resource.HugepageGrant{
			{Node: 0, Size: 2 << 20, Bytes: 4 << 20}, {Node: 0, Size: 1 << 30, Bytes: 1 << 30}, {Node: 1, Size: 2 << 20, Bytes: 2 << 20},
		},
		MIG: []resource.MIGGrant{
			{GPU: 2, Instance: 0, UUID: "MIG-0", Profile: "1g.10gb"},
			{GPU: 2, Instance: 3, UUID: "MIG-3", Profile: "1g.10gb"},
			{GPU: 5, Instance: 0, UUID: "MIG-5", Profile: "1g.10gb+me"},
		},
	}
}

// parts are assignments of one kind of grant each.
func parts(a resource.Assignment) map[string]resource.Assignment {
	return map[string]resource.Assignment{
		"CPUs": {CPUs: a.CPUs}, "memory": {Memory: a.Memory}, "huge pages": {Hugepages: a.Hugepages}, "GPUs": {GPUs: a.GPUs}, "MIG instances": {MIG: a.MIG},
	}
}

func TestAssignmentVectorSumsTheGrants(t *testing.T) {
	want := resource.Vector{
		resource.CPU: 2500, resource.Memory: 1<<30 + 1<<20, resource.GPU: 1250, "hugepages-2Mi": 6 << 20, "hugepages-1Gi": 1 << 30,
		"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-1g.10gb.me": 1,
	}
	if diff := cmp.Diff(want, assignment().Vector()); diff != "" {
		t.Errorf("vector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(resource.Vector{}, resource.Assignment{}.Vector()); diff != "" {
		t.Errorf("vector of nothing (-want +got):\n%s", diff)
	}
	hostile := resource.Assignment{
		CPUs:      []resource.CPUGrant{{ID: 0, Milli: math.MaxInt64}, {ID: 1, Milli: 1}},
		Memory:    []resource.MemoryGrant{{Node: 0, Bytes: math.MaxInt64}, {Node: 1, Bytes: math.MaxInt64}},
		Hugepages: []resource.HugepageGrant{{Node: 0, Size: 1 << 30, Bytes: math.MaxInt64}, {Node: 1, Size: 1 << 30, Bytes: math.MaxInt64}},
		GPUs:      []resource.GPUGrant{{Index: 0, Milli: math.MaxInt64}, {Index: 1, Milli: math.MaxInt64}},
	}
	for name, got := range hostile.Vector() {
		if got != math.MaxInt64 {
			t.Errorf("%s: two of the greatest amount make %d", name, got)
		}
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
	for name, part := range parts(a) {
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
	c.CPUs[0].Milli, c.Memory[0].Bytes, c.GPUs[0].UUID, c.Hugepages[0].Node, c.MIG[0].Profile = 1, 1, "GPU-9", 7, "7g.80gb"
	if diff := cmp.Diff(assignment(), a); diff != "" {
		t.Errorf("the original changed (-want +got):\n%s", diff)
	}
}

func TestTheCloneOfNothingIsNothing(t *testing.T) {
	if diff := cmp.Diff(resource.Assignment{}, resource.Assignment{}.Clone()); diff != "" {
		t.Errorf("the clone has something:\n%s", diff)
	}
}

func TestAssignmentsAreEqualInEveryField(t *testing.T) {
	a := assignment()
	if !a.Equal(a.Clone()) || !a.Equal(a) {
		t.Error("an assignment differs from its clone")
	}
	empty := resource.Assignment{CPUs: []resource.CPUGrant{}, MIG: []resource.MIGGrant{}}
	if !empty.Equal(resource.Assignment{}) || !(resource.Assignment{}).Equal(empty) {
		t.Error("no grants differ from none")
	}
	for name, change := range map[string]func(*resource.Assignment){
		"another CPU":               func(b *resource.Assignment) { b.CPUs[2].ID = 4 },
		"more of a CPU":             func(b *resource.Assignment) { b.CPUs[0].Milli++ },
		"one CPU less":              func(b *resource.Assignment) { b.CPUs = b.CPUs[:2] },
		"memory of another node":    func(b *resource.Assignment) { b.Memory[1].Node = 2 },
		"a byte more":               func(b *resource.Assignment) { b.Memory[0].Bytes++ },
		"no memory":                 func(b *resource.Assignment) { b.Memory = nil },
		"pages of another node":     func(b *resource.Assignment) { b.Hugepages[2].Node = 2 },
		"pages of another size":     func(b *resource.Assignment) { b.Hugepages[1].Size = 2 << 20 },
		"a page more":               func(b *resource.Assignment) { b.Hugepages[0].Bytes += 2 << 20 },
		"one grant of pages less":   func(b *resource.Assignment) { b.Hugepages = b.Hugepages[1:] },
		"a GPU at another place":    func(b *resource.Assignment) { b.GPUs[0].Index = 0 },
		"another GPU":               func(b *resource.Assignment) { b.GPUs[0].UUID = "GPU-9" },
		"a greater share":           func(b *resource.Assignment) { b.GPUs[1].Milli = 500 },
		"one GPU more":              func(b *resource.Assignment) { b.GPUs = append(b.GPUs, resource.GPUGrant{Index: 7}) },
		"an instance of another":    func(b *resource.Assignment) { b.MIG[2].GPU = 6 },
		"another place":             func(b *resource.Assignment) { b.MIG[1].Instance = 2 },
		"another instance":          func(b *resource.Assignment) { b.MIG[0].UUID = "MIG-9" },
		"another profile":           func(b *resource.Assignment) { b.MIG[0].Profile = "1g.10gb+me" },
		"the instances' order":      func(b *resource.Assignment) { b.MIG[0], b.MIG[1] = b.MIG[1], b.MIG[0] },
		"everything is given back":  (*resource.Assignment).Reset,
		"everything but the memory": func(b *resource.Assignment) { *b = parts(*b)["memory"] },
	} {
		t.Run(name, func(t *testing.T) {
			b := a.Clone()
			change(&b)
			if a.Equal(b) || b.Equal(a) {
				t.Errorf("%+v equals %+v", a, b)
			}
		})
	}
}

func TestResetKeepsTheRoom(t *testing.T) {
	a, full := assignment(), assignment()
	if allocs := testing.AllocsPerRun(100, func() {
		a.Reset()
		if !a.IsZero() || len(a.CPUSet().String()) != 0 {
			t.Fatal("something is left")
		}
		a.CPUs, a.Memory = append(a.CPUs, full.CPUs...), append(a.Memory, full.Memory...)
		a.Hugepages, a.GPUs, a.MIG = append(a.Hugepages, full.Hugepages...), append(a.GPUs, full.GPUs...), append(a.MIG, full.MIG...)
	}); allocs != 0 {
		t.Errorf("filling it again takes %g allocations", allocs)
	}
	if !a.Equal(full) {
		t.Errorf("filled again it is %+v", a)
	}
}

func BenchmarkAssignmentEqual(b *testing.B) {
	x, y := assignment(), assignment()
	b.ReportAllocs()
	for b.Loop() {
		if !x.Equal(y) {
			b.Fatal("they differ")
		}
	}
}
