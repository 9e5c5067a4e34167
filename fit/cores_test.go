package fit_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

func TestCoreChoice(t *testing.T) {
	smt := shape{nodes: 1, cores: 8, threads: 2, coresPerL3: 4, memory: gib} // siblings are i and i+8, L3 groups 0-3 and 4-7
	groups := shape{nodes: 1, cores: 12, threads: 1, coresPerL3: 4, memory: gib}
	two := shape{nodes: 2, cores: 4, threads: 2, memory: gib, gpuNodes: []int{0, 1}, link: switched} // siblings are i and i+8
	one := resource.Request{GPUs: 1}
	tests := map[string]struct {
		host     shape
		reserved string
		held     []resource.Assignment
		gpus     resource.Request
		cores    int
		policy   resource.NUMAPolicy
		want     string // "" is refused
	}{
		"a core comes with all its threads":                        {host: smt, cores: 1, want: "0,8"},
		"a core that is partly used is not whole":                  {host: smt, held: []resource.Assignment{part(0, 1), part(9, 1)}, cores: 1, want: "2,10"},
		"a core with a reserved thread is not whole":               {host: smt, reserved: "8", cores: 1, want: "1,9"},
		"cores take the tightest L3 group that holds them":         {host: groups, held: []resource.Assignment{wholeCPUs("4,5")}, cores: 2, want: "6-7"},
		"cores leave the broken group if the next holds all":       {host: groups, held: []resource.Assignment{wholeCPUs("0")}, cores: 4, want: "4-7"},
		"more than a group has is spread over the fewest":          {host: groups, held: []resource.Assignment{wholeCPUs("0,4-5")}, cores: 7, want: "1-3,8-11"},
		"the rest goes to the tightest group that holds it":        {host: groups, held: []resource.Assignment{wholeCPUs("0,4-5")}, cores: 6, want: "6-11"},
		"all cores of the host":                                    {host: smt, cores: 8, want: "0-15"},
		"more cores than the host has":                             {host: smt, cores: 9},
		"enough millicores that are not whole cores":               {host: smt, held: []resource.Assignment{part(0, 1)}, cores: 8},
		"cores are on the GPU's node":                              {host: two, held: []resource.Assignment{wholeCPUs("0,8")}, gpus: one, cores: 4, want: "4-7,12-15"},
		"cores overflow to the other node":                         {host: two, held: []resource.Assignment{wholeCPUs("0,8")}, gpus: resource.Request{GPUs: 2}, cores: 5, want: "1,4-7,9,12-15"},
		"cores of one node where two are needed are refused":       {host: two, cores: 5, policy: resource.NUMASingleNode},
		"restricted allows the two nodes that any host would need": {host: two, cores: 5, policy: resource.NUMARestricted, want: "0-4,8-12"},
		"restricted refuses two nodes where one is enough":         {host: two, held: []resource.Assignment{part(0, 1), part(4, 1)}, cores: 4, policy: resource.NUMARestricted},
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
			req := test.gpus
			req.Cores, req.NUMA = test.cores, test.policy
			var got resource.Assignment
			ok := h.Assign(f, req, &got)
			if s := got.CPUSet().String(); s != test.want || ok != (test.want != "") {
				t.Errorf("CPUs are %q (%v), want %q; reasons %v", s, ok, test.want, h.Explain(f, req))
			}
			if err := h.Check(f); err != nil {
				t.Error(err)
			}
		})
	}
}

// hybrid is a processor of two performance cores with two threads each, four
// efficiency and two low-power cores.
func hybrid(t *testing.T) *fit.Host {
	topology := &numa.Topology{Nodes: []numa.Node{{ID: 0, Memory: gib}}}
	for id := range 10 {
		c := numa.CPU{ID: id, NUMA: 0, L3: 0, Online: true, Siblings: bitset.Of(id), Kind: numa.Efficiency}
		switch {
		case id < 4:
			c.Siblings, c.Kind = bitset.Of(id&^1, id|1), numa.Performance
		case id >= 8:
			c.Kind, c.L3 = numa.LowPower, 1
		}
		topology.CPUs = append(topology.CPUs, c)
		topology.Nodes[0].CPUs.Add(id)
	}
	h, err := fit.NewHost(topology, shape{}.inventory(), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestKindsOfCoresAreMixedOnlyWhereNoneHasEnough(t *testing.T) {
	h := hybrid(t)
	for cores, want := range map[int]string{1: "0-1", 2: "0-3", 3: "4-6", 4: "4-7", 5: "0-6", 7: "0-8", 8: "0-9"} {
		f := h.NewFree()
		var got resource.Assignment
		if !h.Assign(f, resource.Request{Cores: cores}, &got) {
			t.Fatalf("%d cores are refused", cores)
		}
		if s := got.CPUSet().String(); s != want {
			t.Errorf("%d cores are CPUs %s, want %s", cores, s, want)
		}
		if err := h.Check(f); err != nil {
			t.Error(err)
		}
	}
	if n := h.FreeCores(h.NewFree()); n != 8 {
		t.Errorf("%d cores are free, want 8", n)
	}
}

// TestCoresTouchTheFewestGroups compares with the definition: no set of fewer
// L3 groups has as many intact cores, and a single group is the tightest.
func TestCoresTouchTheFewestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 1, 0)
		f := h.NewFree()
		drawHeld(t, h, f)
		kinds := map[numa.CoreKind]bool{}
		intact := map[int]int{} // by L3 group
		for _, c := range h.Topology().CPUs {
			kinds[c.Kind] = true
			if firstOnline(h, c) && wholeCore(h, f, c) {
				intact[c.L3]++
			}
		}
		req := resource.Request{Cores: between(t, 1, 8, "cores")}
		var got resource.Assignment
		if len(kinds) > 1 || !h.Assign(f, req, &got) {
			return
		}
		touched := map[int]bool{}
		for id := range got.CPUSet().All() {
			c, _ := h.Topology().CPU(id)
			touched[c.L3] = true
		}
		var counts []int
		for _, n := range intact {
			counts = append(counts, n)
		}
		slices.Sort(counts)
		slices.Reverse(counts)
		want, left := 0, req.Cores
		for left > 0 {
			left -= counts[want]
			want++
		}
		if len(touched) != want {
			t.Fatalf("%d cores touch %d groups of %v, want %d", req.Cores, len(touched), intact, want)
		}
		for g := range touched {
			for _, n := range counts {
				if want == 1 && n >= req.Cores && n < intact[g] {
					t.Fatalf("%d cores are in a group of %d, one of %d holds them", req.Cores, intact[g], n)
				}
			}
		}
	})
}

// firstOnline reports whether a CPU is the first online thread of its core.
func firstOnline(h *fit.Host, c numa.CPU) bool {
	for id := range c.Siblings.All() {
		if sibling, ok := h.Topology().CPU(id); ok && sibling.Online {
			return id == c.ID
		}
	}
	return false
}

// wholeCore reports whether all online threads of a CPU's core are free.
func wholeCore(h *fit.Host, f *fit.Free, c numa.CPU) bool {
	for i, sibling := range h.Topology().CPUs {
		if c.Siblings.Has(sibling.ID) && sibling.Online && f.CPU[i] != resource.WholeCPU {
			return false
		}
	}
	return true
}

func TestSharedCPUsLeaveWholeCoresWhole(t *testing.T) {
	h := shape{nodes: 1, cores: 8, threads: 2, coresPerL3: 4, memory: gib}.host(t, fit.Reserved{})
	f := h.NewFree()
	// Nine requests for half a CPU and four for a whole one.
	var cores []int
	for _, cpu := range []resource.Millicores{500, 1000, 500, 500, 1000, 500, 500, 1000, 500, 500, 1000, 500, 500} {
		var a resource.Assignment
		if !h.Assign(f, resource.Request{CPU: cpu}, &a) {
			t.Fatal("refused")
		}
		take(t, h, f, a)
		cores = append(cores, h.FreeCores(f))
	}
	// 8.5 CPUs are held: with two threads a core, five cores are the fewest.
	if diff := cmp.Diff([]int{7, 7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3}, cores); diff != "" {
		t.Errorf("whole cores left after each request (-want +got):\n%s", diff)
	}
}
