package fit_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

func TestFreeOfIsNeverMoreThanIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 8)
		f := h.NewFree()
		drawHeld(t, h, f)
		s := fit.Summary{Unhealthy: f.Unhealthy}
		for i, milli := range f.GPU {
			s.GPUs = append(s.GPUs, fit.GPUSummary{Milli: milli, MIGSlices: h.FreeSlices(f, i)})
		}
		for i, n := range h.Topology().Nodes {
			told := fit.NodeSummary{ID: n.ID, CPU: h.FreeCPU(f, i), Cores: h.WholeFreeCores(f, i), Memory: f.Memory[i]}
			for _, size := range h.PageSizes() {
				told.Hugepages += h.HugepagesOn(f, i, size)
			}
			s.Nodes = append(s.Nodes, told)
		}
		view, err := h.FreeOf(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Check(view); err != nil {
			t.Fatal(err)
		}
		for i := range h.Topology().Nodes {
			if h.FreeCPU(view, i) != h.FreeCPU(f, i) || h.WholeFreeCores(view, i) != h.WholeFreeCores(f, i) || view.Memory[i] != f.Memory[i] {
				t.Fatalf("node %d shows %d millicores, %d cores, %d bytes; %d, %d, %d are free", i, h.FreeCPU(view, i), h.WholeFreeCores(view, i), view.Memory[i],
					h.FreeCPU(f, i), h.WholeFreeCores(f, i), f.Memory[i])
			}
			for _, size := range h.PageSizes() {
				if h.HugepagesOn(view, i, size) > h.HugepagesOn(f, i, size) {
					t.Fatalf("node %d shows %d bytes in pages of %d, %d are free", i, h.HugepagesOn(view, i, size), size, h.HugepagesOn(f, i, size))
				}
			}
		}
		for _, profile := range h.MIGProfiles() {
			if h.FreeMIG(view, profile) > h.FreeMIG(f, profile) {
				t.Fatalf("%d instances of %s show, %d are free", h.FreeMIG(view, profile), profile, h.FreeMIG(f, profile))
			}
		}
	})
}

func TestFreeOfRefusesTheSummaryOfAnotherHost(t *testing.T) {
	h := dgx().host(t, fit.Reserved{})
	gpus := make([]fit.GPUSummary, 8)
	for name, test := range map[string]struct {
		s    fit.Summary
		want string
	}{
		"too few GPUs": {fit.Summary{GPUs: gpus[:7]}, "summary of 7 GPUs on a host of 8"},
		"another node": {fit.Summary{GPUs: gpus, Nodes: []fit.NodeSummary{{ID: 5}}}, "node 5"},
	} {
		if _, err := h.FreeOf(test.s); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, test.want)
		}
	}
	// Impossible amounts show as no more than the host has.
	f, err := h.FreeOf(fit.Summary{GPUs: gpus, Nodes: []fit.NodeSummary{{ID: 0, CPU: 1 << 40, Cores: 1 << 20, Memory: 1 << 60, Hugepages: 1 << 60}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Check(f); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(h.FreeCores(f), h.FreeVector(f)); got != fmt.Sprint(64, resource.Vector{resource.CPU: 128_000, resource.Memory: int64(1024 * gib)}) {
		t.Errorf("free are %s", got)
	}
}
