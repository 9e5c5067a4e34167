package fit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

func TestAssignEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 8)
		f := h.NewFree()
		drawHeld(t, h, f)
		req := drawRequest(t, h, 5)
		if rapid.IntRange(0, 3).Draw(t, "withhold") == 0 {
			f.Withheld.CPU = resource.Millicores(rapid.IntRange(0, 16).Draw(t, "withheld CPUs") * 500)
			f.Withheld.Memory = resource.Bytes(rapid.IntRange(0, 12).Draw(t, "withheld memory"))
			f.Withheld.Rest = drawRest(t, h)
		}
		want, wantOK := naive(h, f, req)
		if req.MIG > 0 {
			want, wantOK = naiveMIG(h, f, req)
		}
		wantOK = wantOK && req.Validate() == nil && naiveLeavesRest(h, f, req)
		if sure, never := naiveLeaves(h, f, req); !sure && f.Withheld != (fit.Withheld{}) {
			// Which cores count is the package's affair: the answer is held to the bounds.
			wantOK = wantOK && !never && h.Assign(f.Clone(), req, &resource.Assignment{})
		}
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
		if diff := cmp.Diff(want.instances, instancesOf(got), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("MIG instances for %+v (-brute force +got):\n%s", req, diff)
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
	for _, m := range a.Hugepages {
		nodes[m.Node] = true
	}
	parents := gpuSet(a).Members()
	for _, g := range a.MIG {
		parents = append(parents, g.GPU)
	}
	for _, g := range parents {
		if n := h.Inventory().Devices[g].NUMANode; n >= 0 {
			nodes[n] = true
		}
	}
	return len(nodes)
}

// instancesOf lists the MIG instances of an assignment as pairs of device and
// instance.
func instancesOf(a resource.Assignment) [][2]int {
	var list [][2]int
	for _, g := range a.MIG {
		list = append(list, [2]int{g.GPU, g.Instance})
	}
	return list
}

// amountsOf is the vector of an assignment for a request; whole cores are
// counted, and then not as CPUs. It fails unless every CPU of them is whole and
// every core complete.
func amountsOf(t fataler, h *fit.Host, req resource.Request, a resource.Assignment) resource.Vector {
	t.Helper()
	v := a.Vector()
	if req.Cores == 0 {
		return v
	}
	held := a.CPUSet()
	for _, g := range a.CPUs {
		c, _ := h.Topology().CPU(g.ID)
		if g.Milli != resource.WholeCPU {
			t.Fatalf("CPU %d of a whole core is given with %d millicores", g.ID, g.Milli)
		}
		first := true
		for id := range c.Siblings.All() {
			sibling, ok := h.Topology().CPU(id)
			if ok && sibling.Online && !held.Has(id) {
				t.Fatalf("CPU %d is given without its sibling %d", g.ID, id)
			}
			first = first && (id >= g.ID || !sibling.Online)
		}
		if first {
			v[resource.Cores]++
		}
	}
	delete(v, resource.CPU)
	return v
}

// requireServes fails unless a is exactly what req asks for, is free, is given
// again in the same way, and can be taken and given back without a trace.
func requireServes(t *rapid.T, h *fit.Host, f *fit.Free, req resource.Request, a resource.Assignment) {
	want := req.Vector()
	if req.Cores > 0 {
		delete(want, resource.CPU)
	}
	if diff := cmp.Diff(want, amountsOf(t, h, req, a)); diff != "" {
		t.Fatalf("assigned amounts of %+v (-want +got):\n%s", req, diff)
	}
	requirePinned(t, h, f, req, a)
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
	if cpu, memory := f.CPU, f.Memory; len(a.CPUs) > 0 && sumOf(cpu) < f.Withheld.CPU || len(a.Memory) > 0 && sumOf(memory) < f.Withheld.Memory {
		t.Fatalf("%+v leaves %v millicores and %v bytes free, %+v is withheld", a, sumOf(cpu), sumOf(memory), f.Withheld)
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

// requirePinned fails unless the assignment is given again where its devices
// are pinned.
func requirePinned(t *rapid.T, h *fit.Host, f *fit.Free, req resource.Request, a resource.Assignment) {
	gpus := gpuSet(a)
	for _, g := range a.MIG {
		gpus.Add(g.GPU)
	}
	var pinned resource.Assignment
	if !h.Pinned(f, req, gpus.Members(), &pinned) {
		t.Fatalf("%+v is refused on the GPUs that it got, %s: %v", req, gpus, h.ExplainPinned(f, req, gpus.Members()))
	}
	if diff := cmp.Diff(a, pinned, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("pinned to the same GPUs differs (-free +pinned):\n%s", diff)
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
				if !h.Assign(f, drawRequest(t, h, 4), &a) {
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

func sumOf[T ~int64](list []T) (sum T) {
	for _, v := range list {
		sum += v
	}
	return sum
}
