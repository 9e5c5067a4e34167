package cost_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/musterd/muster/test/programs"
	"github.com/musterd/muster/test/ratchet"
)

const (
	list  = "figures.txt"
	lower = "go test ./test/cost -args -lower"
)

// compiler and architecture are those of the counts of the heap in the list.
const (
	compiler     = "go1.26"
	architecture = "amd64"
)

// hold holds the figures of a group to the list.
func hold(t *testing.T, group string, figures []ratchet.Figure) {
	t.Helper()
	ratchet.Hold(t, list, group, lower, figures)
}

// heap counts allocated objects and their bytes.
type heap struct{ allocations, bytes int64 }

// most is more than any count.
var most = heap{math.MaxInt64, math.MaxInt64}

func (h heap) add(o heap) heap { return heap{h.allocations + o.allocations, h.bytes + o.bytes} }

// least is the least of both, each by itself.
func (h heap) least(o heap) heap {
	return heap{min(h.allocations, o.allocations), min(h.bytes, o.bytes)}
}

// figures are the two figures of a count of the heap.
func (h heap) figures(name, means string) []ratchet.Figure {
	return []ratchet.Figure{
		{Name: name + "-allocations", Value: h.allocations, Unit: "allocations", Means: means},
		{Name: name + "-bytes", Value: h.bytes, Unit: "bytes", Means: means},
	}
}

// meter counts the heap. A test has a single meter.
type meter struct{ before, after runtime.MemStats }

// newMeter skips a test whose program is not compiled as the list's.
func newMeter(t *testing.T) *meter {
	t.Helper()
	switch {
	case programs.RaceEnabled():
		t.Skip("not counted here: the race detector changes the allocations of pools")
	case testing.CoverMode() != "":
		t.Skip("not counted here: coverage changes which functions are inlined")
	case runtime.GOARCH != architecture:
		t.Skipf("not counted here: the figures are those of %s, and types have other sizes on %s", architecture, runtime.GOARCH)
	case !strings.HasPrefix(runtime.Version(), compiler+".") && runtime.Version() != compiler:
		t.Fatalf("the counts of the heap in %s are those of %s, and this is %s: in a commit that does nothing else, set compiler in meter_test.go, remove the rows in allocations and bytes that it changes, and run `%s`", list, compiler, runtime.Version(), lower)
	}
	return &meter{}
}

// settle prepares the process for counts until the end of the test: one processor, and
// no garbage collection, which would empty pools. It comes after a large preparation.
func (m *meter) settle(t *testing.T) {
	oneProcessor(t)
	runtime.GC()
	collected := debug.SetGCPercent(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(collected)
		runtime.GC()
	})
}

// oneProcessor has a single goroutine run at a time until the end of the test: which of them
// comes first decides how many changes come together, and each processor has pools.
func oneProcessor(t *testing.T) {
	processors := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(processors) })
}

// count counts the heap of a call.
func (m *meter) count(f func()) heap {
	runtime.ReadMemStats(&m.before)
	f()
	runtime.ReadMemStats(&m.after)
	return heap{int64(m.after.Mallocs - m.before.Mallocs), int64(m.after.TotalAlloc - m.before.TotalAlloc)}
}

// leastOf is the least count of a few calls, each with its number. The first calls warm
// caches and pools up.
func (m *meter) leastOf(runs int, f func(i int)) heap {
	least := m.count(func() { f(0) })
	for i := 1; i < runs; i++ {
		least = least.least(m.count(func() { f(i) }))
	}
	return least
}
