package gpuallocator_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// request is k GPUs with four cores' time and 16 GiB each: Muster chooses all
// three, the library GPUs alone.
func request(k int, policy resource.NUMAPolicy) resource.Request {
	return resource.Request{GPUs: k, CPU: resource.Millicores(4000 * k), Memory: resource.Bytes(k) * 16 * gib, NUMA: policy}
}

// freeing returns what is free on h where only these GPUs are.
func freeing(t testing.TB, h *fit.Host, available uint) *fit.Free {
	t.Helper()
	f := h.NewFree()
	var held resource.Assignment
	for i, d := range h.Inventory().Devices {
		if available>>i&1 == 0 {
			held.GPUs = append(held.GPUs, resource.GPUGrant{Index: i, UUID: d.UUID, Milli: resource.WholeDevice})
		}
	}
	if err := h.Take(f, held); err != nil {
		t.Fatal(err)
	}
	return f
}

// ours and theirs are the sets chosen, as masks.
func ours(t testing.TB, h *fit.Host, f *fit.Free, r resource.Request) uint {
	t.Helper()
	var a resource.Assignment
	if !h.Assign(f, r, &a) {
		t.Fatalf("%d GPUs refused", r.GPUs)
	}
	var set uint
	for _, g := range a.GPUs {
		set |= 1 << g.Index
	}
	return set
}

func theirs(list []*gpuallocator.Device, available uint, k int) uint {
	var free []*gpuallocator.Device
	for i, d := range list {
		if available>>i&1 == 1 {
			free = append(free, d)
		}
	}
	var set uint
	for _, d := range gpuallocator.NewBestEffortPolicy().Allocate(free, nil, k) {
		set |= 1 << d.Index
	}
	return set
}

// tally counts outcomes of a comparison.
type tally struct{ better, equal, worse int }

func (c *tally) add(ours, theirs int) {
	switch {
	case ours > theirs:
		c.better++
	case ours == theirs:
		c.equal++
	default:
		c.worse++
	}
}

func (c tally) String() string {
	return fmt.Sprintf("%d better, %d equal, %d worse", c.better, c.equal, c.worse)
}

// compare goes through every set of available GPUs and every size. chosen counts
// the chosen sets by their score, left counts what choices of equal score leave free.
func compare(t testing.TB, p topology, policy resource.NUMAPolicy) (chosen, left tally) {
	h, list, pairs := p.host(t), p.library(t), p.pairs(t)
	for available := uint(1); available < 1<<len(list); available++ {
		f := freeing(t, h, available)
		for k := 1; k <= bits.OnesCount(available); k++ {
			a, b := ours(t, h, f, request(k, policy)), theirs(list, available, k)
			scoreA, scoreB := setScore(pairs, a), setScore(pairs, b)
			chosen.add(scoreA, scoreB)
			if scoreA < scoreB {
				t.Errorf("%d of %08b: ours %08b scores %d, theirs %08b %d", k, available, a, scoreA, b, scoreB)
			}
			if scoreA == scoreB {
				left.add(setScore(pairs, available&^a), setScore(pairs, available&^b))
			}
		}
	}
	return chosen, left
}

// TestOurSetIsNeverWorseConnected compares on each of the library's own topologies.
func TestOurSetIsNeverWorseConnected(t *testing.T) {
	for _, p := range own() {
		for _, policy := range []resource.NUMAPolicy{resource.NUMANone, resource.NUMABestEffort} {
			t.Run(fmt.Sprintf("%s, NUMA policy %s", p.name, policy), func(t *testing.T) {
				chosen, left := compare(t, p, policy)
				t.Logf("chosen: %s; left free by choices of equal score: %s", chosen, left)
			})
		}
	}
}

// BenchmarkChoices counts how often our set is better connected than the library's.
func BenchmarkChoices(b *testing.B) {
	for _, p := range own() {
		b.Run(p.name, func(b *testing.B) {
			var chosen, left tally
			for b.Loop() {
				chosen, left = compare(b, p, resource.NUMABestEffort)
			}
			chosen.report(b, "")
			left.report(b, "left-")
		})
	}
}

// report reports the counts as figures of a benchmark.
func (c tally) report(b *testing.B, prefix string) {
	b.ReportMetric(float64(c.better), prefix+"better")
	b.ReportMetric(float64(c.equal), prefix+"equal")
	b.ReportMetric(float64(c.worse), prefix+"worse")
}
