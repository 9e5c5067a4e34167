package fit_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

func TestExplainNamesTheBindingConstraint(t *testing.T) {
	s := shape{nodes: 2, cores: 4, threads: 1, memory: 100, gpuNodes: []int{0, 0, 1, 1}, link: islands(2)}
	inventory := s.inventory()
	inventory.Devices[3].Model = "B"
	h, err := fit.NewHost(s.topology(), inventory, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		held      []resource.Assignment
		unhealthy uint64
		req       resource.Request
		want      []string // how each reason starts, or a part of it
	}{
		"nothing is asked for":         {req: resource.Request{}, want: []string{"InvalidRequest: nothing is requested"}},
		"too much CPU and memory":      {req: resource.Request{CPU: 9000, Memory: 201}, want: []string{"Insufficient cpu: want 9, have 8", "Insufficient memory: want 201, have 200"}},
		"too many GPUs":                {req: resource.Request{GPUs: 5}, want: []string{"Insufficient nvidia.com/gpu: want 5, have 4"}},
		"GPUs are held":                {held: []resource.Assignment{gpu(h, 0, 1000)}, req: resource.Request{GPUs: 4}, want: []string{"Insufficient nvidia.com/gpu: want 4, have 3"}},
		"GPUs are free in parts alone": {held: []resource.Assignment{gpu(h, 0, 500), gpu(h, 1, 500)}, req: resource.Request{GPUs: 3}, want: []string{"Fragmented nvidia.com/gpu: want 3, have 2"}},
		"a share finds parts alone":    {held: []resource.Assignment{gpu(h, 0, 500), gpu(h, 1, 600), gpu(h, 2, 1000), gpu(h, 3, 1000)}, req: resource.Request{GPUShare: 700}, want: []string{"Fragmented nvidia.com/gpu: want 700m, have 500m"}},
		"GPUs are unhealthy":           {unhealthy: 1, req: resource.Request{GPUs: 4}, want: []string{"Unhealthy nvidia.com/gpu: want 4, have 3"}},
		"too few are of the model":     {req: resource.Request{GPUs: 2, GPUModel: "B"}, want: []string{"GPUModel nvidia.com/gpu: want 2, have 1"}},
		"too few have the memory":      {req: resource.Request{GPUs: 1, GPUMemory: 81 * gib}, want: []string{"GPUModel nvidia.com/gpu: want 1, have 0"}},
		"three are not linked":         {req: resource.Request{GPUs: 3, Link: resource.LinkNVLink}, want: []string{"GPULink nvidia.com/gpu: want 3, have 2"}},
		"one node has too little":      {req: resource.Request{CPU: 5000, NUMA: resource.NUMASingleNode}, want: []string{"policy single-numa-node allows 1 nodes, what is free needs 2; node 0 has 4 cpu"}},
		"an emptier host would do": {
			held: []resource.Assignment{wholeCPUs("0,4")}, req: resource.Request{CPU: 4000, NUMA: resource.NUMARestricted},
			want: []string{"policy restricted allows 1 nodes, what is free needs 2; node 0 has 3 cpu"},
		},
		"restricted takes what any host needs": {held: []resource.Assignment{wholeCPUs("0,4")}, req: resource.Request{CPU: 5000, NUMA: resource.NUMARestricted}},
		"best effort takes what there is":      {held: []resource.Assignment{wholeCPUs("0,4")}, req: resource.Request{CPU: 4000}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := h.NewFree()
			take(t, h, f, test.held...)
			f.Unhealthy = test.unhealthy
			got := h.Explain(f, test.req)
			if len(got) != len(test.want) {
				t.Fatalf("reasons are %v, want %v", got, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("reason is %q, want it to contain %q", got[i], want)
				}
			}
		})
	}
}

func TestExplainTellsOfCoresPagesAndInstances(t *testing.T) {
	s := shape{
		nodes: 2, cores: 4, threads: 2, memory: gib, pages: map[int]int64{2048: 4, 64: 1}, gpuNodes: []int{0, 1, 1}, link: switched,
		mig: map[int][]string{0: mixed, 1: seven},
	}
	h := s.host(t, fit.Reserved{})
	small := func(n int) resource.Request { return resource.Request{MIG: n, MIGProfile: "1g.10gb"} }
	with := func(req resource.Request, change func(*resource.Request)) resource.Request {
		change(&req)
		return req
	}
	tests := map[string]struct {
		held      []resource.Assignment
		unhealthy uint64
		req       resource.Request
		want      []string
	}{
		"too many cores":                  {req: resource.Request{Cores: 9}, want: []string{"Insufficient muster.io/cores: want 9, have 8: 8 of the host's 8 whole cores are free"}},
		"cores are held":                  {held: []resource.Assignment{wholeCPUs("0,8")}, req: resource.Request{Cores: 8}, want: []string{"Insufficient muster.io/cores: want 8, have 7: 7 of"}},
		"cores are partly used":           {held: []resource.Assignment{part(0, 1), part(1, 1)}, req: resource.Request{Cores: 7}, want: []string{"Fragmented muster.io/cores: want 7, have 6: 15998 millicores are free in all, partly in cores that others use; 6 of"}},
		"cores of one node":               {held: []resource.Assignment{part(0, 1)}, req: resource.Request{Cores: 5, NUMA: resource.NUMASingleNode}, want: []string{"policy single-numa-node allows 1 nodes, what is free needs 2; node 0 has 7999m cpu, 1040320Ki memory, 3 whole cores, 0 GPUs free; node 1 has 8 cpu"}},
		"too many huge pages":             {req: resource.Request{Hugepages: 18 << 20, HugepageSize: 2 << 20}, want: []string{"Insufficient hugepages-2Mi: want 18Mi, have 16Mi"}},
		"pages of a size not there":       {req: resource.Request{Hugepages: 1 << 30, HugepageSize: 1 << 30}, want: []string{"Insufficient hugepages-1Gi: want 1Gi, have 0: this host has huge pages of 64Ki, 2Mi"}},
		"huge pages of one node":          {req: resource.Request{Hugepages: 10 << 20, HugepageSize: 2 << 20, NUMA: resource.NUMASingleNode}, want: []string{"needs 2; node 0 has 8 cpu, 1040320Ki memory, 8Mi in 2Mi pages"}},
		"too many instances":              {held: []resource.Assignment{instance(h, 0, 3)}, req: small(9), want: []string{"Insufficient nvidia.com/mig-1g.10gb: want 9, have 8: 8 of 9 such instances are free on healthy GPUs"}},
		"a profile not there":             {req: resource.Request{MIG: 1, MIGProfile: "4g.40gb"}, want: []string{"GPUModel nvidia.com/mig-4g.40gb: want 1, have 0: no GPU has instances of this profile; this host has 1g.10gb (9), 2g.20gb (1), 3g.40gb (1)"}},
		"instances of another model":      {req: with(small(1), func(r *resource.Request) { r.GPUModel = "B" }), want: []string{`GPUModel nvidia.com/mig-1g.10gb: want 1, have 0: 0 of 9 such instances are of model "B" with at least 0`}},
		"instances with too little":       {req: with(small(1), func(r *resource.Request) { r.GPUMemory = 11 * gib }), want: []string{`GPUModel nvidia.com/mig-1g.10gb: want 1, have 0: 0 of 9 such instances are of model "" with at least 11Gi`}},
		"instances on unhealthy GPUs":     {unhealthy: 2, req: small(3), want: []string{"Unhealthy nvidia.com/mig-1g.10gb: want 3, have 2: 7 free instances are on unhealthy GPUs"}},
		"instances and cores are short":   {req: with(small(10), func(r *resource.Request) { r.Cores = 9 }), want: []string{"Insufficient muster.io/cores", "Insufficient nvidia.com/mig-1g.10gb"}},
		"instances of one node":           {req: with(small(8), func(r *resource.Request) { r.NUMA = resource.NUMASingleNode }), want: []string{"needs 2; node 0 has 8 cpu, 1040320Ki memory, 2 1g.10gb instances free; node 1 has 8 cpu, 1040320Ki memory, 7 1g"}},
		"whole GPUs are in MIG mode":      {req: resource.Request{GPUs: 2}, want: []string{"Insufficient nvidia.com/gpu: want 2, have 1: 1 of 3 GPUs match and are healthy, 1 of them can take this request; 2 in MIG mode"}},
		"best effort spans what it needs": {req: with(small(9), func(r *resource.Request) { r.Cores = 8 })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := h.NewFree()
			take(t, h, f, test.held...)
			f.Unhealthy = test.unhealthy
			got := h.Explain(f, test.req)
			if len(got) != len(test.want) {
				t.Fatalf("reasons are %v, want %v", got, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("reason is %q, want it to contain %q", got[i], want)
				}
			}
		})
	}
	bare := shape{nodes: 1, cores: 1, threads: 1, memory: gib}.host(t, fit.Reserved{})
	for want, req := range map[string]resource.Request{"this host has no huge pages": {Hugepages: 1 << 21, HugepageSize: 1 << 21}, "this host has no MIG instances": small(1)} {
		if got := bare.Explain(bare.NewFree(), req); len(got) != 1 || !strings.Contains(got[0].Detail, want) {
			t.Errorf("reasons are %v, want one with %q", got, want)
		}
	}
}

func TestUnhealthyDevicesTakeNoNewWorkButGiveBackOld(t *testing.T) {
	s := shape{nodes: 1, cores: 1, threads: 1, memory: gib, gpuNodes: []int{0, 0}, link: switched}
	inventory := s.inventory()
	inventory.Devices[0].Health = devices.Tainted
	inventory.Devices[1].Health = devices.Suspect
	h, err := fit.NewHost(s.topology(), inventory, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	f := h.NewFree()
	if got := h.FreeVector(f)[resource.GPU]; got != 1000 {
		t.Errorf("%d milli are free, want those of the suspect device", got)
	}
	var a resource.Assignment
	if !h.Assign(f, resource.Request{GPUs: 1}, &a) || a.GPUs[0].Index != 1 {
		t.Errorf("assigned %+v, want GPU 1", a)
	}
	take(t, h, f, gpu(h, 0, 1000))
	if err := h.Give(f, gpu(h, 0, 1000)); err != nil {
		t.Error(err)
	}
	f.Unhealthy = 0
	if !h.Assign(f, resource.Request{GPUs: 2}, &a) {
		t.Error("two healthy GPUs are refused")
	}
}
