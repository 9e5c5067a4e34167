package main

import (
	"runtime/metrics"
	"testing"

	"pgregory.net/rapid"
)

func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		live uint64
		want int64
	}{
		"an empty heap": {0, 384 * mib},
		"a usual heap may be five times its live": {40 * mib, 384 * mib},
		"a heap of 192 MiB":                       {192 * mib, 384 * mib},
		"a large heap is at most twice its live":  {500 * mib, 1000 * mib},
		"a number that no heap has":               {1 << 63, 1 << 47},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memoryLimit(c.live); got != c.want {
				t.Errorf("the limit is %d, want %d", got, c.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		live, more := rapid.Uint64Range(0, 1<<40).Draw(t, "live"), rapid.Uint64Range(0, 1<<30).Draw(t, "more")
		if memoryLimit(live) > memoryLimit(live+more) || memoryLimit(live) < int64(live) {
			t.Errorf("the limit is %d for %d bytes and %d for %d", memoryLimit(live), live, memoryLimit(live+more), live+more)
		}
	})
}

// The runtime has the metric that the limit follows.
func TestTheRuntimeCountsLiveObjects(t *testing.T) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(sample); sample[0].Value.Kind() != metrics.KindUint64 {
		t.Errorf("the metric is of kind %d", sample[0].Value.Kind())
	}
}
