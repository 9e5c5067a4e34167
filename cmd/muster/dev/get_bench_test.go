package dev

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/sdk"
)

// BenchmarkGet is a get of an allocation over REST, with 4 clients at once, embedded etcd
// and 4 nodes. The processor time is that of the whole process, clients included.
func BenchmarkGet(b *testing.B) {
	c := asStarted(b, Config{Nodes: 4})
	allocations := c.Client.Allocations("bench")
	if _, err := one(b.Context(), allocations, "a"); err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	before, began := cpuTime(b), time.Now()
	for range 4 {
		all.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if _, err := allocations.Get(b.Context(), "a", sdk.GetOptions{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/get")
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "gets/s")
}
