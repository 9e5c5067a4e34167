package admission_test

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// registered is a specification with whole devices of these models.
func registered(amounts resource.Vector, models ...string) record.NodeSpec {
	spec := record.NodeSpec{Capacity: amounts.Clone(), Allocatable: amounts.Clone()}
	if len(models) > 0 {
		spec.Capacity[resource.GPU] = int64(len(models)) * 1000
		spec.Allocatable[resource.GPU] = spec.Capacity[resource.GPU]
	}
	spec.Topology.GPUs = len(models)
	for _, m := range models {
		at := slices.Index(spec.Topology.GPUModels, m)
		if at < 0 {
			at = len(spec.Topology.GPUModels)
			spec.Topology.GPUModels = append(spec.Topology.GPUModels, m)
		}
		spec.Topology.GPUModel = append(spec.Topology.GPUModel, at)
	}
	return spec
}

// approvedAs has a node approved with the capacity of another specification.
func approvedAs(spec, as record.NodeSpec) record.NodeSpec {
	c := record.Capacity(admission.RegisteredCapacity(as))
	spec.Approved = &c
	return spec
}

func TestANodeThatGrewGivesTheApprovedPart(t *testing.T) {
	pages, slice, fpga := resource.Name("hugepages-1Gi"), resource.MIG("1g.10gb"), resource.Name("example.com/fpga")
	base := resource.Vector{resource.CPU: 4000, resource.Memory: 100 << 30}
	with := func(more resource.Vector) resource.Vector {
		v := base.Clone()
		maps.Copy(v, more)
		return v
	}
	for name, c := range map[string]struct {
		approved, now record.NodeSpec
		lowered       resource.Vector
		want          resource.Vector // allocatable
		foreign       bool
		product       string // the label
		count         string
	}{
		"as approved":                 {approved: registered(base), now: registered(base), want: base},
		"less than approved":          {approved: registered(with(resource.Vector{resource.CPU: 8000})), now: registered(base), want: base},
		"more CPUs and memory":        {approved: registered(base), now: registered(resource.Vector{resource.CPU: 64000, resource.Memory: 900 << 30}), want: base},
		"memory within the tolerance": {approved: registered(base), now: registered(with(resource.Vector{resource.CPU: 5000, resource.Memory: 101 << 30})), want: with(resource.Vector{resource.Memory: 101 << 30})},
		"CPUs grew and memory shrank": {approved: registered(base), now: registered(resource.Vector{resource.CPU: 64000, resource.Memory: 50 << 30}), want: with(resource.Vector{resource.Memory: 50 << 30})},
		"a limit below the approval":  {approved: registered(base), now: registered(with(resource.Vector{resource.CPU: 64000})), lowered: resource.Vector{resource.CPU: 1000}, want: with(resource.Vector{resource.CPU: 1000})},
		"a limit above the approval":  {approved: registered(base), now: registered(with(resource.Vector{resource.CPU: 64000})), lowered: resource.Vector{resource.CPU: 5000}, want: base},
		"a limit of another resource": {approved: registered(base), now: registered(with(resource.Vector{resource.CPU: 64000})), lowered: resource.Vector{resource.Memory: 1}, want: with(resource.Vector{resource.Memory: 1})},
		"huge pages, instances and counted resources": {
			approved: registered(with(resource.Vector{pages: 2 << 30, slice: 7, fpga: 1})), now: registered(with(resource.Vector{pages: 9 << 30, slice: 14, fpga: 3})),
			want: with(resource.Vector{pages: 2 << 30, slice: 7, fpga: 1}),
		},
		"kinds that are new": {approved: registered(base), now: registered(with(resource.Vector{pages: 9 << 30, fpga: 3})), want: with(resource.Vector{pages: 0, fpga: 0})},
		"memory grew beside huge pages, which are a part of it": {
			approved: registered(with(resource.Vector{pages: 40 << 30})), now: registered(with(resource.Vector{resource.Memory: 200 << 30, pages: 40 << 30})),
			want: with(resource.Vector{resource.Memory: 60 << 30, pages: 40 << 30}),
		},
		"memory grew by huge pages that nobody approved": {approved: registered(base), now: registered(with(resource.Vector{resource.Memory: 200 << 30, pages: 100 << 30})), want: with(resource.Vector{pages: 0})},
		"more devices of the model": {
			approved: registered(base, "A100", "A100"), now: registered(base, "A100", "A100", "A100", "A100"),
			want: with(resource.Vector{resource.GPU: 2000}), product: "A100", count: "2",
		},
		"devices of a new model beside the approved ones": {
			approved: registered(base, "A100", "A100"), now: registered(base, "H100", "A100", "A100"),
			want: with(resource.Vector{resource.GPU: 2000}), product: "A100", count: "2",
		},
		"some devices are of another model": {
			approved: registered(base, "A100", "A100"), now: registered(base, "H100", "A100"),
			want: with(resource.Vector{resource.GPU: 1000}), product: "A100", count: "1",
		},
		"all devices are of another model": {
			approved: registered(base, "A100", "A100"), now: registered(base, "H100", "H100"),
			want: with(resource.Vector{resource.GPU: 0}), foreign: true,
		},
		"the first devices of a host":           {approved: registered(base), now: registered(base, "H100"), want: with(resource.Vector{resource.GPU: 0})},
		"devices are lost, and the host grew":   {approved: registered(base, "A100"), now: registered(with(resource.Vector{resource.CPU: 64000})), want: base},
		"an approval that knows no models":      {approved: registered(with(resource.Vector{resource.GPU: 2000})), now: registered(base, "A100", "A100", "A100"), want: with(resource.Vector{resource.GPU: 2000}), product: "A100", count: "2"},
		"CPUs grew and the devices are as ever": {approved: registered(base, "A100"), now: registered(with(resource.Vector{resource.CPU: 64000}), "A100"), want: with(resource.Vector{resource.GPU: 1000}), product: "A100", count: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := approvedAs(c.now, c.approved)
			spec.Lowered = c.lowered
			if diff := cmp.Diff(c.want, admission.Allocatable(spec, nil)); diff != "" {
				t.Errorf("allocatable (-want +got):\n%s", diff)
			}
			if got := admission.IsForeign(spec); got != c.foreign {
				t.Errorf("foreign: %t, want %t", got, c.foreign)
			}
			labels := admission.Labels(admission.RegisteredAs("n1", spec), nil, nil)
			if labels["nvidia.com/gpu.product"] != c.product || labels["nvidia.com/gpu.count"] != c.count {
				t.Errorf("labels %v, want %q devices of %q: a node is found by the devices that it gives", labels, c.count, c.product)
			}
			spec = approvedAs(spec, spec)
			spec.Lowered = nil
			if diff := cmp.Diff(c.now.Allocatable, admission.Allocatable(spec, nil)); diff != "" || admission.IsForeign(spec) {
				t.Errorf("allocatable once approved (-want +got):\n%s", diff)
			}
			spec.Approved = nil
			if diff := cmp.Diff(c.now.Allocatable, admission.Allocatable(spec, nil)); diff != "" || admission.IsForeign(spec) {
				t.Errorf("allocatable where growth is allowed (-want +got):\n%s", diff)
			}
		})
	}
}

// A node never gives more than was approved, and never less than the least of the approved
// amount, the offered amount and the limit.
func TestPropertyANodeGivesTheLeastOfApprovedOfferedAndLimit(t *testing.T) {
	names := []resource.Name{resource.CPU, resource.Memory, resource.GPU, "hugepages-2Mi", "hugepages-1Gi", resource.MIG("1g.10gb"), "example.com/fpga"}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) resource.Vector {
			v := resource.Vector{}
			for _, name := range names {
				if n := rapid.Int64Range(-1, 4).Draw(t, label+" "+string(name)); n >= 0 {
					v[name] = n * 1000
				}
			}
			// Memory includes the huge pages.
			v[resource.Memory] += v["hugepages-2Mi"] + v["hugepages-1Gi"]
			return v
		}
		approved, spec := draw("approved"), record.NodeSpec{Capacity: draw("offered")}
		spec.Allocatable = spec.Capacity.Clone()
		pages := spec.Capacity["hugepages-2Mi"] + spec.Capacity["hugepages-1Gi"]
		spec.Allocatable[resource.Memory] -= pages
		spec.Approved = &record.Capacity{Amounts: approved}
		for _, name := range []resource.Name{resource.CPU, resource.Memory, resource.GPU} {
			if n := rapid.Int64Range(-4, 4).Draw(t, "limit "+string(name)); n >= 0 {
				if spec.Lowered == nil {
					spec.Lowered = resource.Vector{}
				}
				spec.Lowered[name] = n * 1000
			}
		}
		got := admission.Allocatable(spec, nil)
		given := got["hugepages-2Mi"] + got["hugepages-1Gi"]
		for _, name := range names {
			want := min(spec.Allocatable[name], approved[name])
			if name == resource.Memory {
				if want = spec.Allocatable[name]; spec.Capacity[name]-approved[name]/admission.MemoryTolerance > approved[name] {
					want = min(want, max(0, approved[name]-given))
				}
			}
			if most, limited := spec.Lowered[name]; limited {
				want = min(want, most)
			}
			if got[name] != want {
				t.Errorf("%s: %d is given of %d offered, %d approved, limits %v; want %d", name, got[name], spec.Allocatable[name], approved[name], spec.Lowered, want)
			}
		}
	})
}

// drawDevices draws at most six devices of two models.
func drawDevices(t *rapid.T) []admission.Device {
	var list []admission.Device
	for i := range rapid.IntRange(0, 6).Draw(t, "devices") {
		list = append(list, admission.Device{
			Model: rapid.SampledFrom([]string{"A", "B"}).Draw(t, fmt.Sprint("model ", i)), MIG: rapid.IntRange(0, 2).Draw(t, fmt.Sprint("mig ", i)) == 0,
			Free: resource.Milli(rapid.SampledFrom([]int{0, 500, 1000}).Draw(t, fmt.Sprint("free ", i))),
		})
	}
	return list
}

func TestPropertyTheFewestDevicesAreWithheldAndFreeOnesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawDevices(t)
		b := admission.Bounds{Amounts: resource.Vector{}}
		if n := rapid.IntRange(-1, 6).Draw(t, "gpus"); n >= 0 {
			b.Amounts[resource.GPU] = int64(n) * 1000
		}
		if rapid.Bool().Draw(t, "models") {
			b.Models = map[string]int{"A": rapid.IntRange(0, 4).Draw(t, "A")}
		}
		// fits counts the whole devices and all devices of a set within the bounds.
		fits := func(open uint64) (whole, all int, ok bool) {
			models := map[string]int{}
			for i, d := range list {
				if open&(1<<i) == 0 {
					continue
				}
				all++
				if models[d.Model]++; !d.MIG {
					whole++
				}
			}
			for model, n := range models {
				if b.Models != nil && n > b.Models[model] {
					return 0, 0, false
				}
			}
			most, limited := b.Amounts[resource.GPU]
			return whole, all, !limited || whole <= int(most/1000)
		}
		bestWhole, bestAll := 0, 0
		for open := range uint64(1) << len(list) {
			if whole, all, ok := fits(open); ok && (whole > bestWhole || whole == bestWhole && all > bestAll) {
				bestWhole, bestAll = whole, all
			}
		}
		withheld := b.Withhold(list, func(int, int) int { return 0 })
		whole, all, ok := fits(^withheld)
		if !ok || whole != bestWhole || all != bestAll || bits.Len64(withheld) > len(list) {
			t.Fatalf("of %+v within %+v: %b are withheld, so %d whole devices and %d in all are given (allowed: %t); want %d and %d", list, b, withheld, whole, all, ok, bestWhole, bestAll)
		}
		for i, taken := range list {
			for j, left := range list {
				if withheld&(1<<i) != 0 && withheld&(1<<j) == 0 && taken.Model == left.Model && taken.MIG == left.MIG && taken.Free < left.Free {
					t.Fatalf("of %+v within %+v: device %d is withheld, and %d is freer", list, b, i, j)
				}
			}
		}
		for i := range list { // the next choice is the same
			list[i].Withheld = withheld&(1<<i) != 0
		}
		if again := b.Withhold(list, func(int, int) int { return 0 }); again != withheld {
			t.Fatalf("of %+v within %+v: %b are withheld, and then %b", list, b, withheld, again)
		}
	})
}

func TestDevicesOfAnotherModelAreWithheldAlsoWhileTheyAreUsed(t *testing.T) {
	a, h := admission.Device{Model: "A100", Free: 1000}, admission.Device{Model: "H100", Free: 1000}
	used := h
	used.Free = 0
	sick := a
	sick.Sick = true
	slices := admission.Device{Model: "A100", MIG: true, Free: 1000}
	for name, c := range map[string]struct {
		devices []admission.Device
		gpus    int64
		models  map[string]int
		want    uint64
	}{
		"another model beside the approved":    {[]admission.Device{h, a, a}, 2, map[string]int{"A100": 2}, 0b001},
		"another model that is used":           {[]admission.Device{used, a, a}, 2, map[string]int{"A100": 2}, 0b001},
		"a sick device of the approved model":  {[]admission.Device{sick, a, a}, 2, map[string]int{"A100": 2}, 0b001},
		"the last of equal ones":               {[]admission.Device{a, a, a}, 2, map[string]int{"A100": 2}, 0b100},
		"a new device in MIG mode":             {[]admission.Device{a, a, slices}, 2, map[string]int{"A100": 2}, 0b100},
		"a new whole device beside MIG":        {[]admission.Device{a, a, slices}, 1, map[string]int{"A100": 2}, 0b010},
		"models that the approval lacks":       {[]admission.Device{a, h, h}, 1, nil, 0b110},
		"a limit of none":                      {[]admission.Device{a, slices}, 0, nil, 0b01},
		"as many as approved, of both models":  {[]admission.Device{a, h}, 2, map[string]int{"A100": 1, "H100": 1}, 0},
		"a limit below the approval by models": {[]admission.Device{h, a, a}, 1, map[string]int{"A100": 2}, 0b101},
	} {
		t.Run(name, func(t *testing.T) {
			b := admission.Bounds{Amounts: resource.Vector{resource.GPU: c.gpus * 1000}, Models: c.models}
			if got := b.Withhold(c.devices, func(int, int) int { return 0 }); got != c.want {
				t.Errorf("%03b are withheld, want %03b", got, c.want)
			}
		})
	}
}

func ExampleBoundsOf() {
	spec := record.NodeSpec{Capacity: resource.Vector{resource.CPU: 64000}, Approved: &record.Capacity{Amounts: resource.Vector{resource.CPU: 2000}}}
	fmt.Println(admission.BoundsOf(spec).Amounts)
	// Output: map[cpu:2000]
}

func BenchmarkBoundsOf(b *testing.B) {
	spec := approvedAs(registered(resource.Vector{resource.CPU: 64000}, "A100", "A100"), registered(resource.Vector{resource.CPU: 2000}, "A100"))
	b.ReportAllocs()
	for b.Loop() {
		admission.BoundsOf(spec)
	}
}
