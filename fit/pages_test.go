package fit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

const mib resource.Bytes = 1 << 20

func TestPoolsOfHugePagesAreNoOrdinaryMemory(t *testing.T) {
	s := shape{nodes: 4, cores: 1, threads: 1, memory: 100 * mib}
	topology := s.topology()
	topology.Nodes[0].Hugepages = map[int]int64{2048: 10, 64: 16, 1 << 20: 0}
	topology.Nodes[1].Hugepages = map[int]int64{2048: 100} // more than the node has
	topology.Nodes[2].Hugepages = map[int]int64{2048: 10}
	topology.Nodes[2].MemoryOnly = true
	topology.Nodes[3].Hugepages = map[int]int64{3 * 1024: 10} // of a size no request can name
	h, err := fit.NewHost(topology, s.inventory(), fit.Reserved{Memory: 149 * mib})
	if err != nil {
		t.Fatal(err)
	}
	f := h.NewFree()
	// 79 and 70 MiB are ordinary; all of it is reserved.
	if diff := cmp.Diff([]resource.Bytes{0, 0, 0, 0}, f.Memory); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]resource.Bytes{64 << 10, 2 * mib}, h.PageSizes()); diff != "" {
		t.Errorf("page sizes (-want +got):\n%s", diff)
	}
	want := resource.Vector{resource.CPU: 4000, "hugepages-64Ki": int64(mib), "hugepages-2Mi": int64(220 * mib)}
	if diff := cmp.Diff(want, h.Allocatable()); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	var onNodes []resource.Bytes
	for i := range topology.Nodes {
		onNodes = append(onNodes, h.HugepagesOn(f, i, 2*mib))
	}
	if diff := cmp.Diff([]resource.Bytes{20 * mib, 200 * mib, 0, 0}, onNodes); diff != "" {
		t.Errorf("2 MiB pages by node (-want +got):\n%s", diff)
	}
	if got := []resource.Bytes{h.FreeHugepages(f, 2*mib), h.FreeHugepages(f, gib), h.HugepagesOn(f, 0, gib)}; !cmp.Equal(got, []resource.Bytes{220 * mib, 0, 0}) {
		t.Errorf("free pages of 2 MiB, 1 GiB, and of 1 GiB on a node are %v", got)
	}
}

func TestNewHostRefusesImpossiblePages(t *testing.T) {
	many := map[int]int64{}
	for i := range numa.MaxPageSizes + 1 {
		many[1<<i] = 1
	}
	for name, test := range map[string]struct {
		pages map[int]int64
		want  string
	}{
		"a negative count":     {map[int]int64{2048: -1}, "node 0: -1 huge pages of 2048 kB"},
		"a size of nothing":    {map[int]int64{0: 1}, "node 0: 1 huge pages of 0 kB"},
		"more than any memory": {map[int]int64{2048: 1 << 62}, "node 0: 4611686018427387904 huge pages of 2048 kB"},
		"more sizes than any":  {many, "9 sizes of huge pages, at most 8"},
	} {
		s := shape{nodes: 1, cores: 1, threads: 1, memory: gib, pages: test.pages}
		if _, err := fit.NewHost(s.topology(), s.inventory(), fit.Reserved{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, test.want)
		}
	}
}

func TestPageChoice(t *testing.T) {
	s := shape{nodes: 3, cores: 4, threads: 1, memory: gib, pages: map[int]int64{2048: 8, 1 << 18: 1}, gpuNodes: []int{1}, link: switched}
	h := s.host(t, fit.Reserved{})
	pages := func(node int, bytes resource.Bytes) resource.HugepageGrant {
		return resource.HugepageGrant{Node: node, Size: 2 * mib, Bytes: bytes}
	}
	held := func(g ...resource.HugepageGrant) resource.Assignment { return resource.Assignment{Hugepages: g} }
	tests := map[string]struct {
		held resource.Assignment
		req  resource.Request
		want []resource.HugepageGrant // nil is refused
	}{
		"pages are on one node":                {req: resource.Request{Hugepages: 6 * mib}, want: []resource.HugepageGrant{pages(0, 6*mib)}},
		"the tightest node that has them":      {held: held(pages(2, 8*mib)), req: resource.Request{Hugepages: 6 * mib}, want: []resource.HugepageGrant{pages(2, 6*mib)}},
		"the GPU's node":                       {req: resource.Request{Hugepages: 6 * mib, GPUs: 1}, want: []resource.HugepageGrant{pages(1, 6*mib)}},
		"the node with the CPUs too":           {held: wholeCPUs("0-6"), req: resource.Request{Hugepages: 6 * mib, Cores: 2}, want: []resource.HugepageGrant{pages(2, 6*mib)}},
		"more than a node has":                 {req: resource.Request{Hugepages: 20 * mib}, want: []resource.HugepageGrant{pages(0, 16*mib), pages(1, 4*mib)}},
		"more than a node has, under a policy": {req: resource.Request{Hugepages: 20 * mib, NUMA: resource.NUMASingleNode}},
		"all pages of the host":                {req: resource.Request{Hugepages: 48 * mib, NUMA: resource.NUMARestricted}, want: []resource.HugepageGrant{pages(0, 16*mib), pages(1, 16*mib), pages(2, 16*mib)}},
		"one page more":                        {req: resource.Request{Hugepages: 50 * mib}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := h.NewFree()
			take(t, h, f, test.held)
			test.req.HugepageSize = 2 * mib
			var got resource.Assignment
			ok := h.Assign(f, test.req, &got)
			if diff := cmp.Diff(test.want, got.Hugepages); ok != (test.want != nil) || ok && diff != "" {
				t.Errorf("%v, pages (-want +got):\n%s\nreasons %v", ok, diff, h.Explain(f, test.req))
			}
		})
	}
}
