package fit_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// TestAroundIsTheBestOfAllSets compares with every set that includes the required devices.
func TestAroundIsTheBestOfAllSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 8)
		among, with := drawAmong(t, h)
		n := between(t, len(with), len(among), "n")
		got, ok := h.Around(among, with, n)
		if !ok || !isPart(with, got) || !isPart(got, among) || len(got) != n {
			t.Fatalf("%v of %v with %v: %v, %v", n, among, with, got, ok)
		}
		weakest, sum := connectedBy(h, got)
		for _, set := range subsets(among, n) {
			if !isPart(with, set) {
				continue
			}
			if w, s := connectedBy(h, set); w > weakest || w == weakest && s > sum {
				t.Fatalf("%v of %v with %v: %v has (%v, %d), %v has (%v, %d)", n, among, with, got, weakest, sum, set, w, s)
			}
		}
	})
}

// TestAroundNothingIsTheChoiceOfAnIdleHost compares with the assignment of a request for
// devices alone, on small and on wide hosts.
func TestAroundNothingIsTheChoiceOfAnIdleHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 24)
		among, _ := drawAmong(t, h)
		among = slices.DeleteFunc(among, func(i int) bool { return h.Inventory().Devices[i].MIG.Enabled })
		n := between(t, 1, max(1, len(among)), "n")
		free := h.NewFree()
		free.Unhealthy = 0
		for _, d := range h.Inventory().Devices {
			if !slices.Contains(among, d.Index) {
				free.Unhealthy |= 1 << d.Index
			}
		}
		var a resource.Assignment
		if !h.Assign(free, resource.Request{GPUs: n}, &a) {
			return // there are too few
		}
		var want []int
		for _, g := range a.GPUs {
			want = append(want, g.Index)
		}
		slices.Sort(want)
		if got, ok := h.Around(among, nil, n); !ok || !slices.Equal(got, want) {
			t.Fatalf("%d of %v: %v, %v; Assign chooses %v", n, among, got, ok, want)
		}
	})
}

// TestAroundOnAWideHost holds the size and the required devices of more than 16 devices.
func TestAroundOnAWideHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHost(t, 4, 40)
		among, with := drawAmong(t, h)
		n := between(t, len(with), len(among), "n")
		if got, ok := h.Around(among, with, n); !ok || !isPart(with, got) || !isPart(got, among) || len(got) != n {
			t.Fatalf("%v of %v with %v: %v, %v", n, among, with, got, ok)
		}
	})
}

func TestAroundRefuses(t *testing.T) {
	h := rapid.Custom(func(t *rapid.T) *fit.Host { return drawHost(t, 2, 8) }).Filter(func(h *fit.Host) bool { return len(h.Inventory().Devices) >= 3 }).Example(1)
	for name, c := range map[string]struct {
		among, with []int
		n           int
	}{
		"more than there are":              {[]int{0, 1}, nil, 3},
		"less than must be included":       {[]int{0, 1, 2}, []int{0, 1}, 1},
		"with one that is not among":       {[]int{0, 1}, []int{2}, 1},
		"a device twice":                   {[]int{0, 0}, nil, 1},
		"a device that the host lacks":     {[]int{0, 99}, nil, 1},
		"a negative number":                {[]int{0, 1}, nil, -1},
		"a required device that it lacks":  {[]int{0, 1}, []int{-1}, 1},
		"a required device is given twice": {[]int{0, 1}, []int{1, 1}, 2},
	} {
		if got, ok := h.Around(c.among, c.with, c.n); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// drawAmong draws devices of a host, and a part of them.
func drawAmong(t *rapid.T, h *fit.Host) (among, with []int) {
	for _, d := range h.Inventory().Devices {
		switch between(t, 0, 3, "use of a device") {
		case 0:
		case 1:
			with = append(with, d.Index)
			fallthrough
		default:
			among = append(among, d.Index)
		}
	}
	return among, with
}

func isPart(part, list []int) bool {
	return !slices.ContainsFunc(part, func(i int) bool { return !slices.Contains(list, i) })
}

// connectedBy is the weakest link between two devices of a set and the sum of the worths
// of all: ten for each NVLink, and one to five for the PCIe relation.
func connectedBy(h *fit.Host, set []int) (weakest devices.Link, sum int) {
	weakest = ^devices.Link(0)
	for i, a := range set {
		for _, b := range set[:i] {
			l := h.Inventory().Link(a, b)
			weakest, sum = min(weakest, l), sum+10*l.NVLinks()+int(l.PCIe())
		}
	}
	return weakest, sum
}

// subsets are the sets of n members of a list.
func subsets(list []int, n int) (all [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for i := range list {
		for _, rest := range subsets(list[i+1:], n-1) {
			all = append(all, append([]int{list[i]}, rest...))
		}
	}
	return all
}
