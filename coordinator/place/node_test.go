package place_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAggregatesCountHealthyDevicesAlone: scores, preemption and `muster why`
// read them, not the fit.
func TestAggregatesCountHealthyDevicesAlone(t *testing.T) {
	n := dgx(t, 1)[0]
	use(n, 1) // one of its eight devices
	before := aggregates(n)
	for i := range n.Free.GPU {
		n.Free.Unhealthy |= 1 << i
		n.Refresh()
		if n.WholeGPUs+i+1 > 8 || int(n.FreeGPU) != 1000*n.WholeGPUs {
			t.Errorf("%d devices are unhealthy: %d whole, %d milli free", i+1, n.WholeGPUs, n.FreeGPU)
		}
	}
	if n.WholeGPUs != 0 || n.FreeGPU != 0 || n.LargestGPU != 0 || n.FreeMIG != 0 {
		t.Errorf("all are unhealthy: %v", aggregates(n))
	}
	n.Free.Unhealthy = 0
	n.Refresh()
	if diff := cmp.Diff(before, aggregates(n)); diff != "" {
		t.Errorf("healthy again (-before +now):\n%s", diff)
	}
}
