package fit_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

func TestHostsOfManyNodes(t *testing.T) {
	tests := map[string]struct {
		nodes       int
		change      func(*numa.Topology)
		req         resource.Request
		want        bool
		wantMemory  resource.Bytes // allocatable
		wantLeftOut []int
	}{
		"all of 64 nodes":                      {nodes: 64, req: resource.Request{CPU: 128000, Memory: 64 * gib}, want: true, wantMemory: 64 * gib},
		"more than 64 nodes have":              {nodes: 64, req: resource.Request{CPU: 128001}, wantMemory: 64 * gib},
		"one of 64 nodes":                      {nodes: 64, req: resource.Request{CPU: 2000, Memory: gib, NUMA: resource.NUMASingleNode}, want: true, wantMemory: 64 * gib},
		"two of 64 nodes":                      {nodes: 64, req: resource.Request{CPU: 3000, Memory: 2 * gib, NUMA: resource.NUMARestricted}, want: true, wantMemory: 64 * gib},
		"all CPUs of 70 nodes":                 {nodes: 70, req: resource.Request{CPU: 140000}, want: true, wantMemory: 63 * gib, wantLeftOut: []int{63, 64, 65, 66, 67, 68, 69}},
		"more memory than 63 of 70 nodes have": {nodes: 70, req: resource.Request{Memory: 64 * gib}, wantMemory: 63 * gib, wantLeftOut: []int{63, 64, 65, 66, 67, 68, 69}},
		"nodes with nothing on them are left out first": {
			nodes: 70, change: func(t *numa.Topology) {
				for i := range 10 {
					t.Nodes[i].Memory, t.Nodes[i].CPUs = 0, t.Nodes[0].CPUs.Minus(t.Nodes[0].CPUs)
					for _, cpu := range []int{i, 70 + i} {
						t.CPUs[cpu].NUMA = numa.Unknown
					}
				}
			}, req: resource.Request{CPU: 140000, Memory: 60 * gib}, want: true, wantMemory: 60 * gib,
		},
		"64 nodes and CPUs of no node": {
			nodes: 64, change: func(t *numa.Topology) {
				t.CPUs[5].NUMA = numa.Unknown
				t.Nodes[5].CPUs.Remove(5)
			}, req: resource.Request{CPU: 128000}, want: true, wantMemory: 63 * gib, wantLeftOut: []int{63},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := shape{nodes: test.nodes, cores: 1, threads: 2, memory: gib}
			topology := s.topology()
			if test.change != nil {
				test.change(topology)
			}
			h, err := fit.NewHost(topology, s.inventory(), fit.Reserved{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.wantLeftOut, fit.LeftOut(topology)); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if got := resource.Bytes(h.Allocatable()[resource.Memory]); got != test.wantMemory {
				t.Errorf("%d bytes of memory are allocatable, want %d", got, test.wantMemory)
			}
			f := h.NewFree()
			var a resource.Assignment
			if ok := h.Assign(f, test.req, &a); ok != test.want {
				t.Fatalf("Assign is %v, reasons %v", ok, h.Explain(f, test.req))
			}
			if !test.want {
				return
			}
			if err := h.Take(f, a); err != nil {
				t.Fatal(err)
			}
			if err := h.Check(f); err != nil {
				t.Error(err)
			}
			if slices.ContainsFunc(a.Memory, func(g resource.MemoryGrant) bool { return slices.Contains(test.wantLeftOut, g.Node) }) {
				t.Errorf("memory of a node that is left out: %v", a.Memory)
			}
		})
	}
}

// TestNothingOfANodeThatIsLeftOutIsTaken: memory and huge pages of such a node
// are refused in an assignment, and a summary of the host gives none.
func TestNothingOfANodeThatIsLeftOutIsTaken(t *testing.T) {
	s := shape{nodes: 70, cores: 1, threads: 1, memory: gib, pages: map[int]int64{2048: 4}}
	h := s.host(t, fit.Reserved{})
	f := h.NewFree()
	for name, a := range map[string]resource.Assignment{
		"memory":     {Memory: []resource.MemoryGrant{{Node: 69, Bytes: 1}}},
		"huge pages": {Hugepages: []resource.HugepageGrant{{Node: 69, Size: 2 * mib, Bytes: 2 * mib}}},
	} {
		if err := h.Take(f, a); err == nil {
			t.Errorf("%s of node 69 is taken", name)
		}
	}
	if got := h.FreeHugepages(f, 2*mib); got != 63*8*mib {
		t.Errorf("%d bytes in huge pages are free, want those of 63 nodes", got)
	}
	var summary fit.Summary
	for id := range 70 {
		summary.Nodes = append(summary.Nodes, fit.NodeSummary{ID: id, CPU: 1000, Memory: gib})
	}
	free, err := h.FreeOf(summary)
	if err != nil {
		t.Fatal(err)
	}
	if free.Memory[69] != 0 || free.Memory[62] == 0 {
		t.Errorf("by the summary node 62 has %d bytes and node 69 has %d", free.Memory[62], free.Memory[69])
	}
}

// TestEveryTopologyOfTheVocabularyMakesAHost: whatever numa.Validate accepts, a
// host is made of, as long as its huge pages are within their bounds.
func TestEveryTopologyOfTheVocabularyMakesAHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shape{nodes: rapid.IntRange(1, numa.MaxNodes).Draw(t, "nodes"), cores: rapid.IntRange(1, 2).Draw(t, "cores"), threads: 1, memory: gib}
		topology := s.topology()
		for i := range topology.Nodes {
			topology.Nodes[i].MemoryOnly = rapid.IntRange(0, 3).Draw(t, "only") == 0
		}
		h, err := fit.NewHost(topology, s.inventory(), fit.Reserved{})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Check(h.NewFree()); err != nil {
			t.Fatal(err)
		}
		if got, all := resource.Bytes(h.Allocatable()[resource.Memory]), topology.Memory(); got > all || got+resource.Bytes(len(fit.LeftOut(topology)))*gib != all {
			t.Fatalf("%d bytes are allocatable of %d, and nodes %v are left out", got, all, fit.LeftOut(topology))
		}
		if got, want := h.Allocatable()[resource.CPU], int64(topology.Threads())*1000; got != want {
			t.Fatalf("%d millicores are allocatable, want %d", got, want)
		}
	})
}
