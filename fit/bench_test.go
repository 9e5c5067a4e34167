package fit_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// sixteen is 16 GPUs over 8 nodes of 16 cores with two threads each: 256 CPUs.
func sixteen(link func(a, b int) devices.Link) shape {
	return shape{
		nodes: 8, cores: 16, threads: 2, coresPerL3: 8, memory: 256 * gib,
		gpuNodes: []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}, link: link,
	}
}

// workload is one benchmarked question.
type workload struct {
	name string
	host shape
	req  resource.Request
	held resource.Assignment
}

func workloads() []workload {
	var all []workload
	for _, k := range []int{1, 2, 4, 8} {
		req := resource.Request{GPUs: k, CPU: resource.Millicores(8000 * k), Memory: resource.Bytes(k) * 64 * gib}
		all = append(all, workload{name: fmt.Sprintf("%d-of-8-nvswitch", k), host: dgx(), req: req})
		pcie := dgx()
		pcie.link = pairs(4)
		all = append(all, workload{name: fmt.Sprintf("%d-of-8-pcie", k), host: pcie, req: req})
	}
	for _, k := range []int{1, 4, 8, 12, 16} {
		req := resource.Request{GPUs: k, CPU: resource.Millicores(4000 * k), Memory: resource.Bytes(k) * 16 * gib}
		all = append(all, workload{name: fmt.Sprintf("%d-of-16-nvswitch", k), host: sixteen(switched), req: req},
			workload{name: fmt.Sprintf("%d-of-16-pcie", k), host: sixteen(pairs(4)), req: req})
	}
	restricted := resource.Request{GPUs: 8, CPU: 32000, Memory: 128 * gib, NUMA: resource.NUMARestricted, Link: resource.LinkNVLink}
	wide := shape{nodes: 4, cores: 32, threads: 2, memory: 256 * gib, link: islands(8)}
	for g := range 32 {
		wide.gpuNodes = append(wide.gpuNodes, g/8)
	}
	twoNodes := dgx()
	twoNodes.gpuNodes = []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}
	for _, k := range []int{1, 2, 4, 8} {
		req := resource.Request{GPUs: k, Cores: 8 * k, Memory: resource.Bytes(k) * 64 * gib}
		all = append(all, workload{name: fmt.Sprintf("%d-of-8-with-cores", k), host: dgx(), req: req})
	}
	all = append(all, partitionedWorkloads()...)
	// Every second thread is held, as after many requests for one CPU.
	return append(all,
		workload{name: "cores-only-16", host: withPages(dgx()), req: resource.Request{Cores: 16, Memory: gib, Hugepages: gib, HugepageSize: 2 << 20}},
		workload{name: "4-of-8-on-split-cores", host: dgx(), req: resource.Request{GPUs: 4, CPU: 48500, Memory: gib}, held: wholeCPUs("128-255")},
		workload{name: "8-of-16-on-two-nodes", host: twoNodes, req: resource.Request{GPUs: 8, CPU: 32000, Memory: 128 * gib}},
		workload{name: "8-of-16-restricted", host: sixteen(switched), req: restricted},
		workload{name: "share-of-8", host: dgx(), req: resource.Request{GPUShare: 300, CPU: 1500, Memory: gib}},
		workload{name: "cpu-only-half-a-core", host: dgx(), req: resource.Request{CPU: 500, Memory: gib}},
		workload{name: "cpu-only-64", host: dgx(), req: resource.Request{CPU: 64000, Memory: gib}},
		workload{name: "8-of-32-islands", host: wide, req: resource.Request{GPUs: 8, CPU: 32000, Memory: gib}})
}

// partitionedWorkloads ask for MIG instances of 8 and of 16 devices: of devices
// that are all alike, and of devices that all differ, the hardest to search.
func partitionedWorkloads() []workload {
	alike, uneven := withPages(dgx()), sixteen(switched)
	wide := shape{nodes: 4, cores: 32, threads: 2, memory: 256 * gib, link: switched}
	alike.mig, uneven.mig, wide.mig = map[int][]string{}, map[int][]string{}, map[int][]string{}
	var held resource.Assignment
	for g := range 8 {
		alike.mig[g] = seven
	}
	for g := range 16 {
		uneven.mig[g] = append(append([]string{}, seven...), []string{"2g.20gb", "3g.40gb", "4g.40gb"}[:g%4]...)
		for k := range g * 5 % 7 {
			held.MIG = append(held.MIG, resource.MIGGrant{GPU: g, Instance: k, UUID: fmt.Sprintf("MIG-%d-%d", g, k), Profile: "1g.10gb"})
		}
	}
	for g := range 32 {
		wide.gpuNodes = append(wide.gpuNodes, g/8)
		wide.mig[g] = seven
	}
	var all []workload
	for _, k := range []int{1, 7, 28} {
		req := resource.Request{MIG: k, MIGProfile: "1g.10gb", Cores: k, Memory: gib, Hugepages: gib, HugepageSize: 2 << 20}
		all = append(all, workload{name: fmt.Sprintf("%d-mig-of-8", k), host: alike, req: req})
	}
	for _, k := range []int{3, 17, 31} {
		req := resource.Request{MIG: k, MIGProfile: "1g.10gb", CPU: 1000, Memory: gib}
		all = append(all, workload{name: fmt.Sprintf("%d-mig-of-uneven-16", k), host: uneven, req: req, held: held})
		req.NUMA = resource.NUMANone
		all = append(all, workload{name: fmt.Sprintf("%d-mig-of-uneven-16-no-policy", k), host: uneven, req: req, held: held})
	}
	return append(all, workload{name: "20-mig-of-32", host: wide, req: resource.Request{MIG: 20, MIGProfile: "1g.10gb", CPU: 1000}})
}

func BenchmarkAssign(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			h := w.host.host(b, fit.Reserved{})
			f := h.NewFree()
			take(b, h, f, w.held)
			var a resource.Assignment
			b.ReportAllocs()
			for b.Loop() {
				if !h.Assign(f, w.req, &a) {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkTakeGive(b *testing.B) {
	h := dgx().host(b, fit.Reserved{})
	f := h.NewFree()
	var a resource.Assignment
	if !h.Assign(f, resource.Request{GPUs: 1, CPU: 16000, Memory: gib}, &a) {
		b.Fatal("refused")
	}
	b.ReportAllocs()
	for b.Loop() {
		if h.Take(f, a) != nil || h.Give(f, a) != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkNewHost(b *testing.B) {
	for name, s := range map[string]shape{"8-gpus": dgx(), "16-gpus": sixteen(pairs(4))} {
		b.Run(name, func(b *testing.B) {
			topology, inventory := s.topology(), s.inventory()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fit.NewHost(topology, inventory, fit.Reserved{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"-like-another", func(b *testing.B) {
			like := s.host(b, fit.Reserved{})
			topology, inventory := s.topology(), s.inventory()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fit.NewHostLike(like, topology, inventory, fit.Reserved{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, w := range workloads() {
		t.Run(w.name, func(t *testing.T) {
			h := w.host.host(t, fit.Reserved{})
			f := h.NewFree()
			take(t, h, f, w.held)
			spare := f.Clone()
			var a resource.Assignment
			n := testing.AllocsPerRun(20, func() {
				spare.CopyFrom(f)
				if !h.Assign(spare, w.req, &a) || h.Take(spare, a) != nil || h.Give(spare, a) != nil {
					t.Fatal("refused")
				}
			})
			if n != 0 {
				t.Errorf("%v allocations per round, want 0", n)
			}
		})
	}
}

// withPages gives every node a pool of huge pages.
func withPages(s shape) shape {
	s.pages = map[int]int64{2048: 1 << 16}
	return s
}
