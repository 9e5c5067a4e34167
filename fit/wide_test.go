package fit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// wide is a host of n GPUs in NVLink islands of four, eight to a node.
func wide(n int, link func(a, b int) devices.Link) shape {
	s := shape{nodes: (n + 7) / 8, cores: 8, threads: 2, memory: 64 * gib, link: link}
	for g := range n {
		s.gpuNodes = append(s.gpuNodes, g/8)
	}
	return s
}

func TestWideHosts(t *testing.T) {
	tests := map[string]struct {
		host shape
		held []int
		req  resource.Request
		want string // "" is refused
	}{
		"four GPUs are one island":                          {host: wide(24, islands(4)), held: []int{0}, req: resource.Request{GPUs: 4}, want: "4-7"},
		"two GPUs come from the broken island":              {host: wide(24, islands(4)), held: []int{9, 10}, req: resource.Request{GPUs: 2}, want: "8,11"},
		"eight GPUs stay on one node":                       {host: wide(32, switched), held: []int{3}, req: resource.Request{GPUs: 8}, want: "8-15"},
		"five GPUs cannot be one island of four":            {host: wide(24, islands(4)), req: resource.Request{GPUs: 5, Link: resource.LinkNVLink}},
		"nine GPUs are on no single node":                   {host: wide(32, switched), req: resource.Request{GPUs: 9, NUMA: resource.NUMASingleNode}},
		"restricted allows nine GPUs their two nodes":       {host: wide(32, switched), held: []int{0}, req: resource.Request{GPUs: 9, NUMA: resource.NUMARestricted}, want: "1,8-15"},
		"a node without the CPUs is passed over":            {host: wide(32, switched), req: resource.Request{GPUs: 2, CPU: 16000, NUMA: resource.NUMASingleNode}, want: "0-1"},
		"all 64 GPUs of the largest host":                   {host: wide(64, islands(8)), req: resource.Request{GPUs: 64}, want: "0-63"},
		"more GPUs than there are":                          {host: wide(17, switched), req: resource.Request{GPUs: 18}},
		"a share goes to the GPU that is alone on its node": {host: wide(17, switched), req: resource.Request{GPUShare: 1}, want: "16"},
		"policy none takes what bonds the others least":     {host: wide(17, switched), held: []int{0}, req: resource.Request{GPUs: 2, NUMA: resource.NUMANone}, want: "1,16"},
		"an island with the link is found beside one held":  {host: wide(20, islands(4)), held: []int{0, 4, 8, 12}, req: resource.Request{GPUs: 4, Link: resource.LinkNVLink}, want: "16-19"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := test.host.host(t, fit.Reserved{})
			f := h.NewFree()
			for _, g := range test.held {
				take(t, h, f, gpu(h, g, 1000))
			}
			var a resource.Assignment
			ok := h.Assign(f, test.req, &a)
			if got := gpuSet(a).String(); ok != (test.want != "") || got != test.want {
				t.Errorf("GPUs are %q (%v), want %q; reasons %v", got, ok, test.want, h.Explain(f, test.req))
			}
			if (len(h.Explain(f, test.req)) == 0) != ok {
				t.Errorf("Assign is %v, reasons are %v", ok, h.Explain(f, test.req))
			}
		})
	}
}

func TestWideAssignmentsServeWhatWasAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 5, 40)
		f := h.NewFree()
		drawHeld(t, h, f)
		req := drawRequest(t, h, 20)
		var a resource.Assignment
		ok := h.Assign(f, req, &a)
		if reasons := h.Explain(f, req); (len(reasons) == 0) != ok {
			t.Fatalf("Assign is %v, reasons are %v", ok, reasons)
		}
		if !ok {
			return
		}
		requireServes(t, h, f, req, a)
		if n := nodesOf(h, a); req.NUMA == resource.NUMASingleNode && n > 1 {
			t.Fatalf("single-numa-node touches %d nodes", n)
		}
		for i, x := range a.GPUs {
			for _, y := range a.GPUs[:i] {
				if l := h.Inventory().Link(x.Index, y.Index); req.Link == resource.LinkSwitch && l < devices.LinkPIX || req.Link == resource.LinkNVLink && l.NVLinks() == 0 {
					t.Fatalf("GPUs %d and %d are linked by %s", x.Index, y.Index, l)
				}
			}
		}
	})
}

func TestManyNodes(t *testing.T) {
	s := shape{nodes: 40, cores: 2, threads: 1, memory: 10 * gib, gpuNodes: []int{0, 20}, link: switched}
	h := s.host(t, fit.Reserved{})
	f := h.NewFree()
	for name, req := range map[string]resource.Request{
		"a third of the host":              {CPU: 26000, Memory: gib},
		"all of the host":                  {CPU: 80000, Memory: 400 * gib, GPUs: 2},
		"memory of many nodes":             {CPU: 1000, Memory: 205 * gib},
		"restricted, beyond what is exact": {CPU: 26000, NUMA: resource.NUMARestricted},
		"two nodes":                        {CPU: 4000, GPUs: 2, NUMA: resource.NUMARestricted},
	} {
		var a resource.Assignment
		if !h.Assign(f, req, &a) {
			t.Errorf("%s: refused: %v", name, h.Explain(f, req))
			continue
		}
		if diff := cmp.Diff(req.Vector(), a.Vector()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var a resource.Assignment
	if h.Assign(f, resource.Request{CPU: 3000, NUMA: resource.NUMASingleNode}, &a) {
		t.Error("three CPUs are on one node of two")
	}
}

func TestCPUsWithoutANodeAreUsedToo(t *testing.T) {
	s := shape{nodes: 1, cores: 2, threads: 1, memory: gib}
	topology := s.topology()
	topology.CPUs[1].NUMA = numa.Unknown
	topology.Nodes[0].CPUs.Remove(1)
	h, err := fit.NewHost(topology, s.inventory(), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	var a resource.Assignment
	if !h.Assign(h.NewFree(), resource.Request{CPU: 2000, Memory: gib}, &a) {
		t.Error("two CPUs of two are refused")
	}
	if h.Assign(h.NewFree(), resource.Request{CPU: 2000, NUMA: resource.NUMASingleNode}, &a) {
		t.Error("a CPU of no node counts as on the other's")
	}
}
