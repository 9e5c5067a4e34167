package fit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

const gib resource.Bytes = 1 << 30

// shape describes a regular host; CPUs are numbered as Linux does on x86: the
// first threads of all cores, then the second threads.
type shape struct {
	nodes, cores, threads int // cores per node, threads per core
	coresPerL3            int // 0 is one group per node
	memory                resource.Bytes
	pages                 map[int]int64 // of every node: page size in kB to count
	gpuNodes              []int
	mig                   map[int][]string // by GPU: the profiles of its instances
	link                  func(a, b int) devices.Link
}

func (s shape) topology() *numa.Topology {
	t := &numa.Topology{}
	perL3 := s.coresPerL3
	if perL3 == 0 {
		perL3 = s.cores
	}
	all := s.nodes * s.cores
	for n := range s.nodes {
		t.Nodes = append(t.Nodes, numa.Node{ID: n, Memory: s.memory, Hugepages: s.pages})
		row := make([]int, s.nodes)
		for m := range row {
			row[m] = 10 + 10*abs(n-m)
		}
		t.Distances = append(t.Distances, row)
	}
	for thread := range s.threads {
		for c := range all {
			var siblings bitset.Set
			for i := range s.threads {
				siblings.Add(i*all + c)
			}
			n := c / s.cores
			l3 := n*((s.cores+perL3-1)/perL3) + c%s.cores/perL3
			t.CPUs = append(t.CPUs, numa.CPU{ID: thread*all + c, Socket: n, Core: c, L3: l3, NUMA: n, Online: true, Siblings: siblings})
			t.Nodes[n].CPUs.Add(thread*all + c)
		}
	}
	return t
}

func abs(x int) int { return max(x, -x) }

func (s shape) inventory() *devices.Inventory {
	inv := &devices.Inventory{}
	for i, n := range s.gpuNodes {
		inv.Devices = append(inv.Devices, devices.Device{Index: i, UUID: fmt.Sprintf("GPU-%08d", i), Model: "A", Memory: 80 * gib, NUMANode: n, MIG: s.partitions(i)})
		row := make([]devices.Link, len(s.gpuNodes))
		for j := range row {
			if i != j {
				row[j] = s.link(min(i, j), max(i, j))
			}
		}
		inv.Links = append(inv.Links, row)
	}
	return inv
}

// partitions is the MIG mode of one GPU. An instance has 10 GiB for each slice.
func (s shape) partitions(gpu int) devices.MIG {
	var m devices.MIG
	for k, profile := range s.mig[gpu] {
		instance := devices.MIGInstance{UUID: fmt.Sprintf("MIG-%d-%d", gpu, k), Profile: profile}
		instance.Memory = resource.Bytes(10*instance.Slices()) * gib
		m.Enabled, m.Instances = true, append(m.Instances, instance)
	}
	return m
}

func (s shape) host(t testing.TB, reserved fit.Reserved) *fit.Host {
	t.Helper()
	h, err := fit.NewHost(s.topology(), s.inventory(), reserved)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// islands links devices by NVLink within islands of the given size, else by
// the interconnect.
func islands(size int) func(a, b int) devices.Link {
	return func(a, b int) devices.Link {
		if a/size == b/size {
			return devices.NVLink(12)
		}
		return devices.LinkSYS
	}
}

func switched(a, b int) devices.Link { return devices.NVLink(18) }

// pairs puts pairs behind a PCIe switch and halves on a NUMA node.
func pairs(half int) func(a, b int) devices.Link {
	return func(a, b int) devices.Link {
		switch {
		case a/2 == b/2:
			return devices.LinkPIX
		case a/half == b/half:
			return devices.LinkNODE
		}
		return devices.LinkSYS
	}
}

// dgx is 8 GPUs behind NVSwitch over two nodes of 64 cores.
func dgx() shape {
	return shape{nodes: 2, cores: 64, threads: 2, coresPerL3: 8, memory: 1024 * gib, gpuNodes: []int{0, 0, 0, 0, 1, 1, 1, 1}, link: switched}
}

func TestNewHostRefuses(t *testing.T) {
	good := shape{nodes: 2, cores: 2, threads: 1, memory: gib, gpuNodes: []int{0}, link: switched}
	tests := map[string]struct {
		change  func(*numa.Topology, *devices.Inventory, *fit.Reserved)
		wantErr string
	}{
		"more reserved memory than there is": {
			func(_ *numa.Topology, _ *devices.Inventory, r *fit.Reserved) { r.Memory = 3 * gib },
			"reserved memory of 3221225472 bytes is outside 0..2147483648",
		},
		"negative reserved memory": {
			func(_ *numa.Topology, _ *devices.Inventory, r *fit.Reserved) { r.Memory = -1 }, "-1 bytes",
		},
		"a reserved CPU that does not exist": {
			func(_ *numa.Topology, _ *devices.Inventory, r *fit.Reserved) { r.CPUs = bitset.Of(1, 9) }, "reserved cpu 9",
		},
		"a topology that breaks its invariant": {
			func(tp *numa.Topology, _ *devices.Inventory, _ *fit.Reserved) { tp.CPUs[0].NUMA = 7 }, "node 7",
		},
		"an inventory that breaks its invariant": {
			func(_ *numa.Topology, i *devices.Inventory, _ *fit.Reserved) { i.Devices[0].UUID = "" }, "no UUID",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology, inventory, reserved := good.topology(), good.inventory(), fit.Reserved{}
			test.change(topology, inventory, &reserved)
			_, err := fit.NewHost(topology, inventory, reserved)
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error is %v, want one with %q", err, test.wantErr)
			}
		})
	}
	if _, err := fit.NewHost(nil, nil, fit.Reserved{}); err == nil {
		t.Error("a host without topology is accepted")
	}
	many := shape{nodes: 1, cores: 1, threads: 1, gpuNodes: make([]int, 65), link: switched}
	if _, err := fit.NewHost(many.topology(), many.inventory(), fit.Reserved{}); err == nil || !strings.Contains(err.Error(), "65 devices") {
		t.Errorf("65 GPUs: error is %v", err)
	}
}

func TestReservedIsKeptProportionally(t *testing.T) {
	s := shape{nodes: 3, cores: 2, threads: 2, memory: 100}
	topology := s.topology()
	topology.Nodes[1].Memory = 200
	topology.Nodes[2].MemoryOnly = true
	for i := range topology.CPUs {
		if topology.CPUs[i].NUMA == 2 {
			topology.CPUs[i].Isolated = true
		}
	}
	h, err := fit.NewHost(topology, s.inventory(), fit.Reserved{CPUs: bitset.Of(0), Memory: 31})
	if err != nil {
		t.Fatal(err)
	}
	f := h.NewFree()
	if diff := cmp.Diff([]resource.Bytes{89, 180, 0}, f.Memory); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(resource.Vector{resource.CPU: 7000, resource.Memory: 269}, h.Allocatable()); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(h.Allocatable(), h.FreeVector(f)); diff != "" {
		t.Errorf("free of the empty host (-want +got):\n%s", diff)
	}
	if got := []int{h.WholeFreeCores(f, 0), h.WholeFreeCores(f, 1), h.WholeFreeCores(f, 2)}; !cmp.Equal(got, []int{1, 2, 0}) {
		t.Errorf("whole free cores are %v, want [1 2 0]: cpu 0 is reserved, node 2 is memory-only", got)
	}
}

func TestTakeAndGiveRefuse(t *testing.T) {
	s := shape{nodes: 3, cores: 2, threads: 1, memory: 100 + 6<<20, pages: map[int]int64{2048: 3}, gpuNodes: []int{0, 1}, link: switched, mig: map[int][]string{1: mixed}}
	topology, inventory := s.topology(), s.inventory()
	topology.CPUs[3].Isolated = true
	topology.Nodes[2].MemoryOnly = true
	h, err := fit.NewHost(topology, inventory, fit.Reserved{CPUs: bitset.Of(2)})
	if err != nil {
		t.Fatal(err)
	}
	held := resource.Assignment{
		CPUs:   []resource.CPUGrant{{ID: 0, Milli: 600}},
		Memory: []resource.MemoryGrant{{Node: 0, Bytes: 60}},
		GPUs:   []resource.GPUGrant{{Index: 0, UUID: "GPU-00000000", Milli: 600}},

		Hugepages: []resource.HugepageGrant{{Node: 1, Size: 2 << 20, Bytes: 4 << 20}},
		MIG:       []resource.MIGGrant{{GPU: 1, Instance: 2, UUID: "MIG-1-2", Profile: "1g.10gb"}},
	}
	pages := func(g ...resource.HugepageGrant) resource.Assignment { return resource.Assignment{Hugepages: g} }
	mig := func(g ...resource.MIGGrant) resource.Assignment { return resource.Assignment{MIG: g} }
	third := resource.MIGGrant{GPU: 1, Instance: 3, UUID: "MIG-1-3", Profile: "1g.10gb"}
	cpus := func(g ...resource.CPUGrant) resource.Assignment { return resource.Assignment{CPUs: g} }
	memory := func(g ...resource.MemoryGrant) resource.Assignment { return resource.Assignment{Memory: g} }
	gpus := func(g ...resource.GPUGrant) resource.Assignment { return resource.Assignment{GPUs: g} }
	tests := map[string]struct {
		a                  resource.Assignment
		wantTake, wantGive string
	}{
		"a CPU partly held":          {cpus(resource.CPUGrant{ID: 0, Milli: 700}), "take cpu 0: want 700 millicores, 400 free", "give cpu 0: 700 millicores to 400 free exceed 1000"},
		"a CPU that is not there":    {cpus(resource.CPUGrant{ID: 9, Milli: 1}), "no such CPU", "no such CPU"},
		"a reserved CPU":             {cpus(resource.CPUGrant{ID: 2, Milli: 1}), "reserved for the system", "reserved for the system"},
		"an isolated CPU":            {cpus(resource.CPUGrant{ID: 3, Milli: 1}), "isolated", "isolated"},
		"a CPU twice":                {cpus(resource.CPUGrant{ID: 0, Milli: 1}, resource.CPUGrant{ID: 0, Milli: 1}), "ascending", "ascending"},
		"more than a CPU":            {cpus(resource.CPUGrant{ID: 1, Milli: 1001}), "outside 1..1000", "outside 1..1000"},
		"nothing of a CPU":           {cpus(resource.CPUGrant{ID: 1}), "outside 1..1000", "outside 1..1000"},
		"too much memory":            {memory(resource.MemoryGrant{Node: 0, Bytes: 61}), "take memory of node 0: want 61 bytes, 40 free", "61 bytes to 40 free exceed 100"},
		"a node not there":           {memory(resource.MemoryGrant{Node: 5, Bytes: 1}), "no such node", "no such node"},
		"no memory":                  {memory(resource.MemoryGrant{Node: 0}), "less than 1", "less than 1"},
		"a node twice":               {memory(resource.MemoryGrant{Node: 0, Bytes: 1}, resource.MemoryGrant{Node: 0, Bytes: 1}), "ascending", "ascending"},
		"a GPU partly held":          {gpus(resource.GPUGrant{Index: 0, UUID: "GPU-00000000", Milli: 1000}), "want 1000 milli, 400 free", "1000 milli to 400 free exceed 1000"},
		"another UUID":               {gpus(resource.GPUGrant{Index: 0, UUID: "GPU-x", Milli: 1}), `it is GPU-00000000, not "GPU-x"`, "not"},
		"a GPU not there":            {gpus(resource.GPUGrant{Index: 2, UUID: "GPU-x", Milli: 1}), "this host has 2 GPUs", "2 GPUs"},
		"a GPU in MIG mode":          {gpus(resource.GPUGrant{Index: 1, UUID: "GPU-00000001", Milli: 1}), "MIG mode", "MIG mode"},
		"too many huge pages":        {pages(resource.HugepageGrant{Node: 1, Size: 2 << 20, Bytes: 6 << 20}), "take 2Mi huge pages of node 1: want 6291456 bytes, 2097152 free", "give 2Mi huge pages of node 1: 6291456 bytes to 2097152 free exceed 6291456"},
		"pages of another size":      {pages(resource.HugepageGrant{Node: 1, Size: 1 << 30, Bytes: 1 << 30}), "take 1Gi huge pages of node 1: this host has none of that size", "none of that size"},
		"half a huge page":           {pages(resource.HugepageGrant{Node: 1, Size: 2 << 20, Bytes: 1 << 20}), "1048576 bytes are no whole number of pages of 2097152 bytes", "no whole number"},
		"no huge page":               {pages(resource.HugepageGrant{Node: 1, Size: 2 << 20}), "at least one", "at least one"},
		"huge pages of no node":      {pages(resource.HugepageGrant{Node: 7, Size: 2 << 20, Bytes: 2 << 20}), "2Mi huge pages of node 7: there is no such node", "no such node"},
		"pages of a memory-only one": {pages(resource.HugepageGrant{Node: 2, Size: 2 << 20, Bytes: 2 << 20}), "memory-only", "memory-only"},
		"huge pages twice":           {pages(resource.HugepageGrant{Node: 0, Size: 2 << 20, Bytes: 2 << 20}, resource.HugepageGrant{Node: 0, Size: 2 << 20, Bytes: 2 << 20}), "ascending", "ascending"},
		"an instance that is held":   {mig(held.MIG[0]), "take MIG instance 2 of GPU 1 (MIG-1-2): it is held", "never said"},
		"an instance that is free":   {mig(third), "never said", "give MIG instance 3 of GPU 1 (MIG-1-3): it is free already"},
		"an instance twice":          {mig(third, third), "ascending", "ascending"},
		"an instance not there":      {mig(resource.MIGGrant{GPU: 1, Instance: 4, UUID: "x"}), "MIG instance 4 of GPU 1 (x): that GPU has 4 instances", "4 instances"},
		"an instance of no GPU":      {mig(resource.MIGGrant{GPU: 2, Instance: 0, UUID: "x"}), "this host has 2 GPUs", "2 GPUs"},
		"an instance by its UUID":    {mig(resource.MIGGrant{GPU: 1, Instance: 3, UUID: "x", Profile: "1g.10gb"}), `it is MIG-1-3, not "x"`, "not"},
		"an instance's profile":      {mig(resource.MIGGrant{GPU: 1, Instance: 3, UUID: "MIG-1-3", Profile: "2g.20gb"}), `it is of profile "1g.10gb", not "2g.20gb"`, "not"},
		"free CPU, an instance not": {
			resource.Assignment{CPUs: []resource.CPUGrant{{ID: 1, Milli: 400}}, MIG: held.MIG}, "it is held", "exceed 1000",
		},
		"free CPU, memory not": {
			resource.Assignment{CPUs: []resource.CPUGrant{{ID: 0, Milli: 400}}, Memory: []resource.MemoryGrant{{Node: 0, Bytes: 99}}},
			"want 99 bytes", "exceed 100",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := h.NewFree()
			if err := h.Take(f, held); err != nil {
				t.Fatal(err)
			}
			before := f.Clone()
			for act, want := range map[string]string{"take": test.wantTake, "give": test.wantGive} {
				if want == "never said" {
					continue
				}
				do := h.Take
				if act == "give" {
					do = h.Give
				}
				if err := do(f, test.a); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error is %v, want one with %q", act, err, want)
				}
				requireSame(t, before, f)
			}
			if err := h.Check(f); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFreeOfAnotherHostPanics(t *testing.T) {
	h := dgx().host(t, fit.Reserved{})
	defer func() {
		if recover() == nil {
			t.Error("the zero Free is accepted")
		}
	}()
	h.Assign(&fit.Free{}, resource.Request{CPU: 1}, &resource.Assignment{})
}

// fataler is what *testing.T and *rapid.T share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// requireSame fails unless both hosts have the same free.
func requireSame(t fataler, want, got *fit.Free) {
	t.Helper()
	type amounts struct {
		CPU       []resource.Millicores
		Memory    []resource.Bytes
		Hugepages []resource.Bytes
		GPU       []resource.Milli
		MIG       []uint16
	}
	if diff := cmp.Diff(amounts{want.CPU, want.Memory, want.Hugepages, want.GPU, want.MIG},
		amounts{got.CPU, got.Memory, got.Hugepages, got.GPU, got.MIG}, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("free changed (-want +got):\n%s", diff)
	}
}
