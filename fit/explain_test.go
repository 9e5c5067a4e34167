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
