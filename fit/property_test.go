package fit_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// drawHost draws a host, regular or broken: sparse node numbers, cores of one
// or two threads, isolated and offline CPUs, any links.
func drawHost(t *rapid.T, maxNodes, maxGPUs int) *fit.Host {
	topology := &numa.Topology{}
	step := rapid.IntRange(1, 3).Draw(t, "step")
	next := 0
	for n := range rapid.IntRange(1, maxNodes).Draw(t, "nodes") {
		node := numa.Node{ID: n * step, Memory: resource.Bytes(rapid.IntRange(0, 20).Draw(t, "memory"))}
		for c := range rapid.IntRange(0, 5).Draw(t, "cores") {
			threads := rapid.IntRange(1, 2).Draw(t, "threads")
			var siblings bitset.Set
			for i := range threads {
				siblings.Add(next + i)
			}
			for range threads {
				topology.CPUs = append(topology.CPUs, numa.CPU{
					ID: next, Core: c, L3: n*4 + c/2, NUMA: node.ID, Siblings: siblings,
					Online: rapid.IntRange(0, 9).Draw(t, "online") > 0, Isolated: rapid.IntRange(0, 9).Draw(t, "isolated") == 0,
				})
				node.CPUs.Add(next)
				next++
			}
		}
		topology.Nodes = append(topology.Nodes, node)
	}
	for range topology.Nodes {
		row := make([]int, len(topology.Nodes))
		for j := range row {
			row[j] = rapid.IntRange(10, 40).Draw(t, "distance")
		}
		topology.Distances = append(topology.Distances, row)
	}
	inventory := drawInventory(t, len(topology.Nodes), step, maxGPUs)
	var reserved fit.Reserved
	if next > 0 && rapid.Bool().Draw(t, "reserve") {
		reserved.CPUs = bitset.Of(rapid.IntRange(0, next-1).Draw(t, "reserved"))
		reserved.Memory = topology.Memory() / 10
	}
	h, err := fit.NewHost(topology, inventory, reserved)
	if err != nil {
		t.Fatalf("the drawn host is refused: %v", err)
	}
	return h
}

func drawInventory(t *rapid.T, nodes, step, maxGPUs int) *devices.Inventory {
	classes := []devices.Link{devices.LinkSYS, devices.LinkNODE, devices.LinkPIX, devices.NVLink(2), devices.NVLink(4)}
	few := rapid.IntRange(1, len(classes)).Draw(t, "classes")
	n := rapid.IntRange(0, maxGPUs).Draw(t, "gpus")
	inv := &devices.Inventory{Links: make([][]devices.Link, n)}
	for i := range n {
		d := devices.Device{
			Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: rapid.SampledFrom([]string{"A", "A", "A", "B"}).Draw(t, "model"),
			Memory: resource.Bytes(rapid.SampledFrom([]int{40, 80}).Draw(t, "gpuMemory")), NUMANode: rapid.IntRange(-1, nodes-1).Draw(t, "gpuNode"),
		}
		if d.NUMANode > 0 {
			d.NUMANode *= step
		}
		d.MIG.Enabled = rapid.IntRange(0, 15).Draw(t, "mig") == 0
		d.Health = devices.Health(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 2, 3}).Draw(t, "health"))
		inv.Devices = append(inv.Devices, d)
		inv.Links[i] = make([]devices.Link, n)
		for j := range i {
			l := classes[rapid.IntRange(0, few-1).Draw(t, "link")]
			inv.Links[i][j], inv.Links[j][i] = l, l
		}
	}
	return inv
}

// drawHeld takes random amounts of everything and returns what.
func drawHeld(t *rapid.T, h *fit.Host, f *fit.Free) resource.Assignment {
	var a resource.Assignment
	for i, free := range f.CPU {
		if free > 0 {
			if m := rapid.SampledFrom([]int{0, 0, 0, 250, 500, 900, 1000, 1000}).Draw(t, "cpu"); m > 0 {
				a.CPUs = append(a.CPUs, resource.CPUGrant{ID: h.Topology().CPUs[i].ID, Milli: resource.Millicores(m)})
			}
		}
	}
	for i, free := range f.Memory {
		if m := rapid.Int64Range(0, int64(free)).Draw(t, "memory"); m > 0 {
			a.Memory = append(a.Memory, resource.MemoryGrant{Node: h.Topology().Nodes[i].ID, Bytes: resource.Bytes(m)})
		}
	}
	for i, free := range f.GPU {
		if free > 0 {
			if m := rapid.SampledFrom([]int{0, 0, 0, 0, 300, 700, 1000}).Draw(t, "gpu"); m > 0 {
				a.GPUs = append(a.GPUs, resource.GPUGrant{Index: i, UUID: h.Inventory().Devices[i].UUID, Milli: resource.Milli(m)})
			}
		}
	}
	if err := h.Take(f, a); err != nil {
		t.Fatalf("take of what is free: %v", err)
	}
	return a
}

func drawRequest(t *rapid.T, maxGPUs int) resource.Request {
	req := resource.Request{
		CPU:    resource.Millicores(rapid.SampledFrom([]int{0, 100, 600, 1000, 1500, 2000, 3000, 4000, 7250, 12000}).Draw(t, "cpu")),
		Memory: resource.Bytes(rapid.IntRange(0, 40).Draw(t, "memory")),
		NUMA:   resource.NUMAPolicy(rapid.IntRange(0, 3).Draw(t, "policy")),
	}
	switch rapid.IntRange(0, 3).Draw(t, "devices") {
	case 0:
		req.GPUShare = resource.Milli(rapid.SampledFrom([]int{100, 300, 500, 999}).Draw(t, "share"))
	case 1, 2:
		req.GPUs = rapid.IntRange(1, maxGPUs).Draw(t, "gpus")
		req.Link = resource.LinkRequirement(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "link"))
	}
	if req.GPUMilli() > 0 {
		req.GPUModel = rapid.SampledFrom([]string{"", "", "A"}).Draw(t, "model")
		req.GPUMemory = resource.Bytes(rapid.SampledFrom([]int{0, 0, 80}).Draw(t, "gpuMemory"))
	}
	return req
}

func TestAssignEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 8)
		f := h.NewFree()
		drawHeld(t, h, f)
		req := drawRequest(t, 5)
		want, wantOK := naive(h, f, req)
		wantOK = wantOK && req.Validate() == nil
		before := f.Clone()
		var got resource.Assignment
		if ok := h.Assign(f, req, &got); ok != wantOK {
			t.Fatalf("Assign(%+v) is %v, brute force says %v; reasons %v", req, ok, wantOK, h.Explain(f, req))
		}
		requireSame(t, before, f)
		if reasons := h.Explain(f, req); (len(reasons) == 0) != wantOK {
			t.Fatalf("Assign is %v, yet the reasons are %v", wantOK, reasons)
		}
		if err := h.Check(f); err != nil {
			t.Fatal(err)
		}
		if !wantOK {
			if !got.IsZero() {
				t.Fatalf("refused, yet left behind %+v", got)
			}
			return
		}
		if diff := cmp.Diff(want.gpus, gpuSet(got).Members(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("GPUs for %+v (-brute force +got):\n%s", req, diff)
		}
		if n := nodesOf(h, got); req.NUMA != resource.NUMANone && n > want.nodes {
			t.Fatalf("%+v touches %d nodes, brute force needs %d: %+v", req, n, want.nodes, got)
		}
		requireServes(t, h, f, req, got)
	})
}

// nodesOf counts the nodes an assignment touches.
func nodesOf(h *fit.Host, a resource.Assignment) int {
	nodes := map[int]bool{}
	for _, c := range a.CPUs {
		cpu, _ := h.Topology().CPU(c.ID)
		nodes[cpu.NUMA] = true
	}
	for _, m := range a.Memory {
		nodes[m.Node] = true
	}
	for _, g := range a.GPUs {
		if n := h.Inventory().Devices[g.Index].NUMANode; n >= 0 {
			nodes[n] = true
		}
	}
	return len(nodes)
}

// requireServes fails unless a is exactly what req asks for, is free, is given
// again in the same way, and can be taken and given back without a trace.
func requireServes(t *rapid.T, h *fit.Host, f *fit.Free, req resource.Request, a resource.Assignment) {
	if diff := cmp.Diff(req.Vector(), a.Vector()); diff != "" {
		t.Fatalf("assigned amounts of %+v (-want +got):\n%s", req, diff)
	}
	again := resource.Assignment{CPUs: make([]resource.CPUGrant, 3)}
	if !h.Assign(f.Clone(), req, &again) {
		t.Fatalf("%+v is refused the second time", req)
	}
	if diff := cmp.Diff(a, again, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the second answer differs (-first +second):\n%s", diff)
	}
	before, sum := f.Clone(), h.FreeVector(f)
	if err := h.Take(f, a); err != nil {
		t.Fatalf("take of %+v: %v", a, err)
	}
	left := h.FreeVector(f)
	left.Add(a.Vector())
	if diff := cmp.Diff(sum, left); diff != "" {
		t.Fatalf("free plus taken (-before +after):\n%s", diff)
	}
	if err := h.Check(f); err != nil {
		t.Fatal(err)
	}
	if err := h.Give(f, a); err != nil {
		t.Fatalf("give of %+v: %v", a, err)
	}
	requireSame(t, before, f)
	if err := h.Check(f); err != nil {
		t.Fatal(err)
	}
}

func TestCPUsAreSplitNoMoreThanNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 1, 0)
		f := h.NewFree()
		drawHeld(t, h, f)
		req := resource.Request{CPU: resource.Millicores(rapid.IntRange(1, 11000).Draw(t, "want"))}
		var got resource.Assignment
		if !h.Assign(f, req, &got) {
			return
		}
		whole, partFits := 0, false
		rest := req.CPU % 1000
		for _, free := range f.CPU {
			if free == 1000 {
				whole++
			} else if free >= rest {
				partFits = true
			}
		}
		need := int(req.CPU / 1000)
		switch {
		case rest == 0 && whole >= need, partFits && whole >= need:
		case rest > 0 && whole > need:
		default:
			return // it must be spread
		}
		if rest > 0 {
			need++
		}
		if len(got.CPUs) != need {
			t.Fatalf("%d millicores are on %d CPUs, %d would do: %+v of %v", req.CPU, len(got.CPUs), need, got.CPUs, f.CPU)
		}
	})
}

// TestFreeSurvivesAnyHistory takes and gives at random and compares with what
// is held.
func TestFreeSurvivesAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 8)
		f := h.NewFree()
		spare := h.NewFree()
		var held []resource.Assignment
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				if err := h.Give(f, held[i]); err != nil {
					t.Fatal(err)
				}
				held = append(held[:i], held[i+1:]...)
			} else {
				var a resource.Assignment
				if !h.Assign(f, drawRequest(t, 4), &a) {
					continue
				}
				if err := h.Take(f, a); err != nil {
					t.Fatal(err)
				}
				held = append(held, a)
			}
			if err := h.Check(f); err != nil {
				t.Fatal(err)
			}
			spare.CopyFrom(f)
			requireSame(t, f, spare)
			if err := h.Check(spare); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range held {
			if err := h.Give(f, a); err != nil {
				t.Fatal(err)
			}
			if !a.IsZero() && h.Give(f.Clone(), a) == nil && h.Check(f) != nil {
				t.Fatalf("%+v was given twice", a)
			}
		}
		requireSame(t, h.NewFree(), f)
	})
}
