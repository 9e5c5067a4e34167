package fit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// seven is a device of seven instances of one slice, mixed one of several
// profiles.
var (
	seven = []string{"1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"}
	mixed = []string{"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}
)

// instance is an assignment of one MIG instance.
func instance(h *fit.Host, gpu, k int) resource.Assignment {
	m := h.Inventory().Devices[gpu].MIG.Instances[k]
	return resource.Assignment{MIG: []resource.MIGGrant{{GPU: gpu, Instance: k, UUID: m.UUID, Profile: m.Profile}}}
}

func TestMIGChoice(t *testing.T) {
	four := shape{
		nodes: 2, cores: 8, threads: 1, memory: 64 * gib, gpuNodes: []int{0, 0, 1, 1, 1}, link: switched,
		mig: map[int][]string{0: seven, 1: seven, 2: seven, 3: mixed},
	}
	small := resource.Request{MIG: 1, MIGProfile: "1g.10gb"}
	tests := map[string]struct {
		held      [][2]int // device and instance
		heldMore  []resource.Assignment
		unhealthy uint64
		req       resource.Request
		count     int
		want      [][2]int // nil is refused
	}{
		"of equal devices the lowest gives":                               {req: small, want: [][2]int{{0, 0}}},
		"the next goes to the device that is partly used":                 {held: [][2]int{{2, 0}}, req: small, want: [][2]int{{2, 1}}},
		"of the partly used the tightest is taken":                        {held: [][2]int{{0, 0}, {3, 0}}, req: small, want: [][2]int{{3, 2}}},
		"two instances come from one device rather than two":              {held: [][2]int{{3, 0}, {3, 2}, {0, 0}}, req: small, count: 2, want: [][2]int{{0, 1}, {0, 2}}},
		"two instances fill what is partly used before a fresh device":    {held: [][2]int{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}}, req: small, count: 3, want: [][2]int{{0, 5}, {0, 6}, {1, 6}}},
		"one NUMA node is better than an unbroken device":                 {held: [][2]int{{0, 0}, {0, 1}, {2, 0}, {3, 0}}, req: small, count: 10, want: [][2]int{{0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}}},
		"policy none does not look at nodes":                              {held: [][2]int{{0, 0}, {2, 0}, {3, 0}}, req: resource.Request{MIG: 8, MIGProfile: "1g.10gb", NUMA: resource.NUMANone}, want: [][2]int{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {3, 2}, {3, 3}}},
		"the node with memory left wins":                                  {heldMore: []resource.Assignment{nodeMemory(0, 60*gib)}, req: resource.Request{MIG: 1, MIGProfile: "1g.10gb", Memory: 8 * gib}, want: [][2]int{{2, 0}}},
		"the node with whole cores left wins":                             {heldMore: []resource.Assignment{wholeCPUs("0-5")}, req: resource.Request{MIG: 1, MIGProfile: "1g.10gb", Cores: 3}, want: [][2]int{{2, 0}}},
		"an unhealthy device gives none":                                  {unhealthy: 1, req: small, want: [][2]int{{1, 0}}},
		"a profile of one device":                                         {req: resource.Request{MIG: 1, MIGProfile: "3g.40gb"}, want: [][2]int{{3, 0}}},
		"all instances of the host":                                       {req: resource.Request{MIG: 21, MIGProfile: "1g.10gb"}, count: 23, want: all(0, 7, 1, 7, 2, 7, 3, -2)},
		"more than the host has":                                          {req: small, count: 24},
		"more than a node has":                                            {req: resource.Request{MIG: 1, MIGProfile: "1g.10gb", NUMA: resource.NUMASingleNode}, count: 15},
		"a profile that no device has":                                    {req: resource.Request{MIG: 1, MIGProfile: "4g.40gb"}},
		"more memory than an instance has":                                {req: resource.Request{MIG: 1, MIGProfile: "1g.10gb", GPUMemory: 11 * gib}},
		"restricted refuses two nodes where an empty host needs only one": {held: [][2]int{{0, 0}, {2, 0}, {2, 1}, {2, 2}}, req: resource.Request{MIG: 14, MIGProfile: "1g.10gb", NUMA: resource.NUMARestricted}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := four.host(t, fit.Reserved{})
			f := h.NewFree()
			for _, g := range test.held {
				take(t, h, f, instance(h, g[0], g[1]))
			}
			take(t, h, f, test.heldMore...)
			f.Unhealthy = test.unhealthy
			req := test.req
			req.MIG = max(req.MIG, test.count)
			var got resource.Assignment
			if h.Assign(f, req, &got) != (test.want != nil) {
				t.Fatalf("assigned %+v, want %v; reasons %v", got, test.want, h.Explain(f, req))
			}
			if diff := cmp.Diff(test.want, instancesOf(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("instances (-want +got):\n%s", diff)
			}
			if err := h.Take(f, got); err != nil {
				t.Error(err)
			}
		})
	}
}

// all lists the instances of devices: pairs of a device and how many, the first
// ones or, if negative, the last of four.
func all(pairs ...int) [][2]int {
	var list [][2]int
	for ; len(pairs) > 0; pairs = pairs[2:] {
		for k := range pairs[1] {
			list = append(list, [2]int{pairs[0], k})
		}
		for k := 4 + pairs[1]; pairs[1] < 0 && k < 4; k++ {
			list = append(list, [2]int{pairs[0], k})
		}
	}
	return list
}

func TestPinnedInstancesComeFromExactlyTheGivenGPUs(t *testing.T) {
	h := shape{
		nodes: 2, cores: 2, threads: 1, memory: gib, gpuNodes: []int{0, 0, 1, 1}, link: switched,
		mig: map[int][]string{0: seven, 1: mixed, 2: seven},
	}.host(t, fit.Reserved{})
	f := h.NewFree()
	take(t, h, f, instance(h, 1, 2), instance(h, 1, 3), instance(h, 0, 0))
	small := func(n int) resource.Request { return resource.Request{MIG: n, MIGProfile: "1g.10gb"} }
	single := resource.Request{MIG: 2, MIGProfile: "1g.10gb", NUMA: resource.NUMASingleNode}
	tests := map[string]struct {
		req  resource.Request
		gpus []int
		want [][2]int
		why  string
	}{
		"all of one GPU":                      {req: small(2), gpus: []int{2}, want: [][2]int{{2, 0}, {2, 1}}},
		"at least one from each":              {req: small(6), gpus: []int{0, 2}, want: [][2]int{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {2, 0}}},
		"a GPU whose instances are held":      {req: small(1), gpus: []int{1}, why: "Insufficient nvidia.com/mig-1g.10gb: want 1, have 0: pinned to GPUs [1]: 0 of 2 such instances are free on healthy GPUs"},
		"one of two GPUs has none":            {req: small(2), gpus: []int{0, 1}, why: "Insufficient nvidia.com/mig-1g.10gb: want 2, have 1: pinned to GPUs [0 1]: each must give an instance, GPU 1 has none free"},
		"more GPUs than instances":            {req: small(1), gpus: []int{0, 2}, why: "InvalidRequest: pinned GPUs [0 2]: the request wants 1 MIG instances, at least one from each"},
		"no GPU":                              {req: small(1), why: "InvalidRequest"},
		"a GPU that is not in MIG mode":       {req: small(1), gpus: []int{3}, why: "Insufficient nvidia.com/mig-1g.10gb: want 1, have 0"},
		"GPUs of two nodes where one must do": {req: single, gpus: []int{0, 2}, why: "NUMAAlignment: pinned to GPUs [0 2]: policy single-numa-node allows 1 nodes, what is free needs 2; node 0 has 2 cpu, 1Gi memory, 6 1g.10gb instances free; node 1 has 2 cpu, 1Gi memory, 7 1g.10gb"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got resource.Assignment
			ok := h.Pinned(f, test.req, test.gpus, &got)
			if diff := cmp.Diff(test.want, instancesOf(got), cmpopts.EquateEmpty()); diff != "" || ok != (test.why == "") {
				t.Errorf("%v, instances (-want +got):\n%s", ok, diff)
			}
			reasons := h.ExplainPinned(f, test.req, test.gpus)
			if ok != (len(reasons) == 0) || !ok && !strings.HasPrefix(reasons[0].String(), test.why) {
				t.Errorf("reasons are %v, want %q", reasons, test.why)
			}
		})
	}
}

func TestMIGDevicesAreNotHandedOutOtherwise(t *testing.T) {
	h := shape{nodes: 1, cores: 2, threads: 1, memory: gib, gpuNodes: []int{0, 0}, link: switched, mig: map[int][]string{0: mixed}}.host(t, fit.Reserved{})
	f := h.NewFree()
	want := resource.Vector{
		resource.CPU: 2000, resource.Memory: int64(gib), resource.GPU: 1000,
		"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-2g.20gb": 1, "nvidia.com/mig-3g.40gb": 1,
	}
	if diff := cmp.Diff(want, h.Allocatable()); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, h.FreeVector(f)); diff != "" {
		t.Errorf("free (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1g.10gb", "2g.20gb", "3g.40gb"}, h.MIGProfiles()); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	take(t, h, f, instance(h, 0, 2))
	if n, slices := h.FreeMIG(f, "1g.10gb"), h.FreeSlices(f, 0); n != 1 || slices != 6 {
		t.Errorf("%d instances and %d slices are free, want 1 and 6", n, slices)
	}
	f.Unhealthy = 1
	if v := h.FreeVector(f); v["nvidia.com/mig-3g.40gb"] != 0 || h.FreeMIG(f, "1g.10gb") != 0 {
		t.Errorf("an unhealthy device counts as free: %v", v)
	}
	for _, req := range []resource.Request{{GPUs: 2}, {GPUShare: 10, GPUModel: "B"}} {
		var a resource.Assignment
		if h.Assign(f, req, &a) {
			t.Errorf("%+v got %+v", req, a)
		}
	}
}

func TestManyMIGDevices(t *testing.T) {
	s := wide(20, switched)
	s.mig = map[int][]string{}
	for g := range 20 {
		s.mig[g] = seven
	}
	s.mig[19] = mixed
	h := s.host(t, fit.Reserved{})
	for name, test := range map[string]struct {
		held []int // whole devices
		req  resource.Request
		want string // the devices
	}{
		"one device if it holds all":     {req: resource.Request{MIG: 7, MIGProfile: "1g.10gb"}, want: "0"},
		"the tightest device":            {req: resource.Request{MIG: 2, MIGProfile: "1g.10gb"}, want: "0"},
		"one node if it holds all":       {held: []int{0, 1, 2}, req: resource.Request{MIG: 40, MIGProfile: "1g.10gb"}, want: "8-13"},
		"two nodes where one is short":   {req: resource.Request{MIG: 60, MIGProfile: "1g.10gb", NUMA: resource.NUMARestricted}, want: "0-8"},
		"a single node is short":         {req: resource.Request{MIG: 57, MIGProfile: "1g.10gb", NUMA: resource.NUMASingleNode}},
		"every instance that there is":   {req: resource.Request{MIG: 19*7 + 2, MIGProfile: "1g.10gb", NUMA: resource.NUMANone}, want: "0-19"},
		"a profile that one device has":  {req: resource.Request{MIG: 1, MIGProfile: "2g.20gb"}, want: "19"},
		"more than all devices together": {req: resource.Request{MIG: 19*7 + 3, MIGProfile: "1g.10gb"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := h.NewFree()
			for _, g := range test.held {
				for k := range 7 {
					take(t, h, f, instance(h, g, k))
				}
			}
			var a resource.Assignment
			ok := h.Assign(f, test.req, &a)
			got := gpuSet(a)
			for _, g := range a.MIG {
				got.Add(g.GPU)
			}
			if got.String() != test.want || ok != (test.want != "") || ok && len(a.MIG) != test.req.MIG {
				t.Errorf("devices are %q (%v), want %q; reasons %v", got, ok, test.want, h.Explain(f, test.req))
			}
		})
	}
}
