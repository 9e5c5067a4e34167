package fit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// wholeCPUs is an assignment of whole CPUs from a list.
func wholeCPUs(list string) resource.Assignment {
	set, err := bitset.Parse(list)
	if err != nil {
		panic(err)
	}
	var a resource.Assignment
	for id := range set.All() {
		a.CPUs = append(a.CPUs, resource.CPUGrant{ID: id, Milli: 1000})
	}
	return a
}

func part(id int, milli resource.Millicores) resource.Assignment {
	return resource.Assignment{CPUs: []resource.CPUGrant{{ID: id, Milli: milli}}}
}

func nodeMemory(node int, bytes resource.Bytes) resource.Assignment {
	return resource.Assignment{Memory: []resource.MemoryGrant{{Node: node, Bytes: bytes}}}
}

// gpu is an assignment of a share, or all, of one device.
func gpu(h *fit.Host, index int, milli resource.Milli) resource.Assignment {
	return resource.Assignment{GPUs: []resource.GPUGrant{{Index: index, UUID: h.Inventory().Devices[index].UUID, Milli: milli}}}
}

func take(t testing.TB, h *fit.Host, f *fit.Free, held ...resource.Assignment) {
	t.Helper()
	for _, a := range held {
		if err := h.Take(f, a); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCPUChoice(t *testing.T) {
	smt := shape{nodes: 1, cores: 8, threads: 2, coresPerL3: 4, memory: gib} // siblings are i and i+8, L3 groups 0-3 and 4-7
	plain := shape{nodes: 1, cores: 8, threads: 1, coresPerL3: 4, memory: gib}
	two := shape{nodes: 2, cores: 4, threads: 1, memory: gib}
	tests := map[string]struct {
		host     shape
		reserved string
		held     []resource.Assignment
		cpu      resource.Millicores
		want     resource.Assignment
	}{
		"two CPUs are both siblings of one core":                    {host: smt, cpu: 2000, want: wholeCPUs("0,8")},
		"an odd CPU goes to a core that is already split":           {host: smt, held: []resource.Assignment{wholeCPUs("13")}, cpu: 1000, want: wholeCPUs("5")},
		"three CPUs take a whole core and a core already split":     {host: smt, held: []resource.Assignment{wholeCPUs("1")}, cpu: 3000, want: wholeCPUs("0,8-9")},
		"two CPUs take a whole core although two split ones exist":  {host: smt, held: []resource.Assignment{wholeCPUs("0-1")}, cpu: 2000, want: wholeCPUs("2,10")},
		"the sibling of a reserved CPU counts as split":             {host: smt, reserved: "8", cpu: 1000, want: wholeCPUs("0")},
		"a request takes the tightest L3 group that holds it":       {host: plain, held: []resource.Assignment{wholeCPUs("4-5")}, cpu: 2000, want: wholeCPUs("6-7")},
		"a request stays in one L3 group":                           {host: plain, held: []resource.Assignment{wholeCPUs("0")}, cpu: 4000, want: wholeCPUs("4-7")},
		"more than one L3 group fills the largest first":            {host: plain, held: []resource.Assignment{wholeCPUs("0")}, cpu: 5000, want: wholeCPUs("1,4-7")},
		"a remainder goes to the tightest partly used CPU":          {host: plain, held: []resource.Assignment{part(2, 400), part(5, 700)}, cpu: 1300, want: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 0, Milli: 1000}, {ID: 5, Milli: 300}}}},
		"a remainder opens a fresh CPU on the same core":            {host: smt, cpu: 1500, want: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 0, Milli: 1000}, {ID: 8, Milli: 500}}}},
		"a remainder is spread where no single CPU has it":          {host: two, held: []resource.Assignment{wholeCPUs("4-7"), wholeCPUs("0"), part(1, 500), part(2, 600), part(3, 700)}, cpu: 900, want: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 1, Milli: 500}, {ID: 2, Milli: 400}}}},
		"a whole CPU is spread where none is whole":                 {host: two, held: []resource.Assignment{wholeCPUs("4-7"), part(0, 500), part(1, 500), part(2, 500), wholeCPUs("3")}, cpu: 1000, want: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 0, Milli: 500}, {ID: 1, Milli: 500}}}},
		"a node with whole CPUs is better than a tighter without":   {host: two, held: []resource.Assignment{part(0, 500), part(1, 500), part(2, 500), part(3, 500)}, cpu: 2000, want: wholeCPUs("4-5")},
		"CPU work packs the node that is tighter":                   {host: two, held: []resource.Assignment{wholeCPUs("4")}, cpu: 2000, want: wholeCPUs("5-6")},
		"a node with exactly the CPUs serves alone":                 {host: two, held: []resource.Assignment{wholeCPUs("0")}, cpu: 4000, want: wholeCPUs("4-7")},
		"a node with exactly the millicores serves alone":           {host: two, held: []resource.Assignment{part(0, 500), part(4, 500), wholeCPUs("1")}, cpu: 3500, want: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 4, Milli: 500}, {ID: 5, Milli: 1000}, {ID: 6, Milli: 1000}, {ID: 7, Milli: 1000}}}},
		"an odd count takes the group with one intact core less":    {host: smt, held: []resource.Assignment{wholeCPUs("0-1"), wholeCPUs("8")}, cpu: 5000, want: wholeCPUs("2-3,9-11")},
		"more than a node has takes one node whole and the rest of": {host: two, cpu: 6000, want: wholeCPUs("0-5")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reserved, err := bitset.Parse(test.reserved)
			if err != nil {
				t.Fatal(err)
			}
			h := test.host.host(t, fit.Reserved{CPUs: reserved})
			f := h.NewFree()
			take(t, h, f, test.held...)
			var got resource.Assignment
			if !h.Assign(f, resource.Request{CPU: test.cpu}, &got) {
				t.Fatalf("refused: %v", h.Explain(f, resource.Request{CPU: test.cpu}))
			}
			if diff := cmp.Diff(test.want.CPUs, got.CPUs); diff != "" {
				t.Errorf("CPUs (-want +got):\n%s", diff)
			}
		})
	}
}

// Most devices are on the first of two nodes. A node that has exactly the CPUs, or exactly the
// memory, serves alone.
func TestANodeOfTheDevicesWithExactlyTheRestServesAlone(t *testing.T) {
	h := shape{nodes: 2, cores: 4, threads: 1, memory: gib, gpuNodes: []int{0, 0, 1}, link: switched}.host(t, fit.Reserved{})
	for name, c := range map[string]struct {
		held resource.Assignment
		want resource.Assignment
		req  resource.Request
	}{
		"CPUs of the second, memory of both": {wholeCPUs("0"), resource.Assignment{CPUs: wholeCPUs("4-7").CPUs, Memory: []resource.MemoryGrant{{Node: 0, Bytes: gib}, {Node: 1, Bytes: gib / 2}}}, resource.Request{GPUs: 3, CPU: 4000, Memory: gib + gib/2}},
		"memory of the first":                {nodeMemory(0, gib/4), nodeMemory(0, gib-gib/4), resource.Request{GPUs: 3, Memory: gib - gib/4}},
	} {
		t.Run(name, func(t *testing.T) {
			f := h.NewFree()
			take(t, h, f, c.held)
			var got resource.Assignment
			if !h.Assign(f, c.req, &got) {
				t.Fatalf("refused: %v", h.Explain(f, c.req))
			}
			got.GPUs = nil
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMixedCoresGiveOddCPUsToSingleThreads(t *testing.T) {
	// Cores 0 and 1 have two threads, 2 and 3 one, as hybrid processors have.
	s := shape{nodes: 1, cores: 4, threads: 2, memory: gib}
	topology := s.topology()
	topology.CPUs[6].Online, topology.CPUs[7].Online = false, false
	h, err := fit.NewHost(topology, s.inventory(), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	for cpu, want := range map[resource.Millicores]string{1000: "2", 2000: "0,4", 3000: "0,2,4"} {
		var got resource.Assignment
		if !h.Assign(h.NewFree(), resource.Request{CPU: cpu}, &got) {
			t.Fatalf("%d millicores refused", cpu)
		}
		if got.CPUSet().String() != want {
			t.Errorf("%d millicores are on CPUs %s, want %s", cpu, got.CPUSet(), want)
		}
	}
}

func TestGPUChoice(t *testing.T) {
	nv4 := shape{nodes: 2, cores: 16, threads: 2, memory: 64 * gib, gpuNodes: []int{0, 0, 0, 0, 1, 1, 1, 1}, link: islands(4)}
	pcie := shape{nodes: 2, cores: 16, threads: 2, memory: 64 * gib, gpuNodes: []int{0, 0, 0, 0, 1, 1, 1, 1}, link: pairs(4)}
	crossed := shape{nodes: 2, cores: 16, threads: 2, memory: 64 * gib, gpuNodes: []int{0, 1, 0, 1}, link: switched}
	unknown := shape{nodes: 2, cores: 16, threads: 2, memory: 64 * gib, gpuNodes: []int{-1, -1}, link: switched}
	asymmetric := shape{nodes: 4, cores: 4, threads: 1, memory: gib, gpuNodes: []int{0, 0, 0, 1, 2, 2, 2, 3}, link: func(a, b int) devices.Link {
		if a/4 == b/4 {
			return devices.LinkNODE
		}
		return devices.LinkSYS
	}}
	tests := map[string]struct {
		host     shape
		heldGPUs []int
		heldMore []resource.Assignment
		shares   map[int]resource.Milli
		req      resource.Request
		want     string // GPUs
		wantCPUs string
	}{
		"two GPUs take the pair behind one PCIe switch":           {host: pcie, heldGPUs: []int{0}, req: resource.Request{GPUs: 2}, want: "2-3"},
		"one GPU breaks the pair that is already broken":          {host: pcie, heldGPUs: []int{5}, req: resource.Request{GPUs: 1}, want: "4"},
		"two GPUs leave the whole NVLink island for a larger one": {host: nv4, heldGPUs: []int{4, 5}, req: resource.Request{GPUs: 2}, want: "6-7"},
		"three GPUs stay within one island":                       {host: nv4, heldGPUs: []int{0, 1}, req: resource.Request{GPUs: 3}, want: "4-6"},
		"three GPUs span islands when none has three":             {host: nv4, heldGPUs: []int{0, 1, 4, 5}, req: resource.Request{GPUs: 3}, want: "2-3,6"},
		"behind NVSwitch the GPUs of one node win":                {host: crossed, req: resource.Request{GPUs: 2}, want: "0,2"},
		"behind NVSwitch the node already broken is consumed":     {host: crossed, heldGPUs: []int{1}, req: resource.Request{GPUs: 1}, want: "3"},
		"the node with CPUs left wins":                            {host: crossed, heldMore: []resource.Assignment{wholeCPUs("0-12,32-44")}, req: resource.Request{GPUs: 2, CPU: 8000}, want: "1,3", wantCPUs: "16-19,48-51"},
		"the node with memory left wins":                          {host: crossed, heldMore: []resource.Assignment{nodeMemory(0, 60*gib)}, req: resource.Request{GPUs: 2, Memory: 8 * gib}, want: "1,3"},
		"policy none does not look where CPUs are left":           {host: crossed, heldMore: []resource.Assignment{wholeCPUs("0-12,32-44")}, req: resource.Request{GPUs: 2, CPU: 8000, NUMA: resource.NUMANone}, want: "0,2"},
		"CPUs are on the GPU's node":                              {host: nv4, heldGPUs: []int{0, 1, 2, 3}, req: resource.Request{GPUs: 1, CPU: 2000}, want: "4", wantCPUs: "16,48"},
		"CPUs overflow to the other node where the GPU's is full": {host: nv4, heldMore: []resource.Assignment{wholeCPUs("0-13,32-47")}, heldGPUs: []int{4, 5, 6, 7}, req: resource.Request{GPUs: 1, CPU: 4000}, want: "0", wantCPUs: "14-16,48"},
		"GPUs without a node go with any node":                    {host: unknown, req: resource.Request{GPUs: 2, CPU: 2000, NUMA: resource.NUMASingleNode}, want: "0-1", wantCPUs: "0,32"},
		"four GPUs of 3/1/3/1 span two nodes":                     {host: asymmetric, req: resource.Request{GPUs: 4}, want: "0-3"},
		"a share fills the partly used GPU":                       {host: pcie, shares: map[int]resource.Milli{6: 300}, req: resource.Request{GPUShare: 500}, want: "6"},
		"a share takes the tightest of the partly used":           {host: pcie, shares: map[int]resource.Milli{2: 100, 6: 400}, req: resource.Request{GPUShare: 500}, want: "6"},
		"a share that fits no used GPU opens a broken pair":       {host: pcie, heldGPUs: []int{3}, shares: map[int]resource.Milli{6: 900}, req: resource.Request{GPUShare: 500}, want: "2"},
		"a whole GPU never goes where a share is":                 {host: pcie, shares: map[int]resource.Milli{0: 1}, req: resource.Request{GPUs: 1}, want: "1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := test.host.host(t, fit.Reserved{})
			f := h.NewFree()
			for _, g := range test.heldGPUs {
				take(t, h, f, gpu(h, g, 1000))
			}
			for g, milli := range test.shares {
				take(t, h, f, gpu(h, g, milli))
			}
			take(t, h, f, test.heldMore...)
			var got resource.Assignment
			if !h.Assign(f, test.req, &got) {
				t.Fatalf("refused: %v", h.Explain(f, test.req))
			}
			if s := gpuSet(got).String(); s != test.want {
				t.Errorf("GPUs are %q, want %q", s, test.want)
			}
			if s := got.CPUSet().String(); test.wantCPUs != "" && s != test.wantCPUs {
				t.Errorf("CPUs are %q, want %q", s, test.wantCPUs)
			}
			var pinned resource.Assignment
			if !h.Pinned(f, test.req, gpuSet(got).Members(), &pinned) {
				t.Fatal("pinned to the same GPUs: refused")
			}
			if diff := cmp.Diff(got, pinned); diff != "" {
				t.Errorf("pinned to the same GPUs differs (-free +pinned):\n%s", diff)
			}
		})
	}
}

func gpuSet(a resource.Assignment) bitset.Set {
	var s bitset.Set
	for _, g := range a.GPUs {
		s.Add(g.Index)
	}
	return s
}

func TestMemoryIsOnOneNodeIfItFits(t *testing.T) {
	s := shape{nodes: 3, cores: 2, threads: 1, memory: 100}
	h := s.host(t, fit.Reserved{})
	tests := map[string]struct {
		held []resource.Assignment
		req  resource.Request
		want []resource.MemoryGrant
	}{
		"it stays with its CPUs": {req: resource.Request{CPU: 1000, Memory: 50}, want: []resource.MemoryGrant{{Node: 0, Bytes: 50}}},
		"the tighter node is filled first": {
			held: []resource.Assignment{nodeMemory(1, 40)}, req: resource.Request{Memory: 50},
			want: []resource.MemoryGrant{{Node: 1, Bytes: 50}},
		},
		"more than a node has is split over neighbours": {
			held: []resource.Assignment{nodeMemory(0, 10)}, req: resource.Request{Memory: 150},
			want: []resource.MemoryGrant{{Node: 0, Bytes: 50}, {Node: 1, Bytes: 100}},
		},
		"it takes every node if it must": {
			req:  resource.Request{Memory: 300},
			want: []resource.MemoryGrant{{Node: 0, Bytes: 100}, {Node: 1, Bytes: 100}, {Node: 2, Bytes: 100}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := h.NewFree()
			take(t, h, f, test.held...)
			var got resource.Assignment
			if !h.Assign(f, test.req, &got) {
				t.Fatalf("refused: %v", h.Explain(f, test.req))
			}
			if diff := cmp.Diff(test.want, got.Memory); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPinnedRefuses(t *testing.T) {
	s := shape{nodes: 2, cores: 2, threads: 1, memory: gib, gpuNodes: []int{0, 0, 1, 1}, link: islands(2)}
	h := s.host(t, fit.Reserved{})
	f := h.NewFree()
	take(t, h, f, gpu(h, 3, 1000))
	tests := map[string]struct {
		req  resource.Request
		gpus []int
		code string
	}{
		"a GPU that is held":            {resource.Request{GPUs: 1}, []int{3}, resource.ReasonInsufficient},
		"a GPU that is not there":       {resource.Request{GPUs: 1}, []int{4}, resource.ReasonInvalidRequest},
		"a negative GPU":                {resource.Request{GPUs: 1}, []int{-1}, resource.ReasonInvalidRequest},
		"a GPU twice":                   {resource.Request{GPUs: 2}, []int{1, 1}, resource.ReasonInvalidRequest},
		"fewer GPUs than asked for":     {resource.Request{GPUs: 2}, []int{1}, resource.ReasonInvalidRequest},
		"GPUs for a request without":    {resource.Request{CPU: 1}, []int{1}, resource.ReasonInvalidRequest},
		"GPUs that are not so linked":   {resource.Request{GPUs: 2, Link: resource.LinkNVLink}, []int{1, 2}, resource.ReasonLink},
		"GPUs of two nodes for one":     {resource.Request{GPUs: 2, NUMA: resource.NUMASingleNode}, []int{1, 2}, resource.ReasonNUMA},
		"a request that asks for less":  {resource.Request{}, nil, resource.ReasonInvalidRequest},
		"another model than asked for":  {resource.Request{GPUs: 1, GPUModel: "B"}, []int{0}, resource.ReasonModel},
		"more CPU than the host has":    {resource.Request{GPUs: 1, CPU: 5000}, []int{0}, resource.ReasonInsufficient},
		"more memory than a GPU has":    {resource.Request{GPUs: 1, GPUMemory: 81 * gib}, []int{0}, resource.ReasonModel},
		"more nodes than empty hosts's": {resource.Request{GPUs: 2, NUMA: resource.NUMARestricted}, []int{1, 2}, resource.ReasonNUMA},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var a resource.Assignment
			if h.Pinned(f, test.req, test.gpus, &a) || !a.IsZero() {
				t.Fatalf("accepted or left behind: %+v", a)
			}
			got := h.ExplainPinned(f, test.req, test.gpus)
			if len(got) != 1 || got[0].Code != test.code {
				t.Errorf("reasons are %v, want %s", got, test.code)
			}
		})
	}
}
