package lead_test

import (
	"fmt"
	"testing"
)

// BenchmarkFigures is what a scrape of the cluster's series costs the leader's loop, at
// most once in monitor.Fresh: two units of four GPUs run on each host.
func BenchmarkFigures(b *testing.B) {
	for _, hosts := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", hosts), func(b *testing.B) {
			c := newCrowd(b, hosts, 4, 8, 0, 1)
			b.ReportAllocs()
			var watch stopwatch
			watch.on()
			for b.Loop() {
				if f := c.Leader().Figures(); len(f.Nodes) != hosts {
					b.Fatalf("%d nodes, want %d", len(f.Nodes), hosts)
				}
			}
			watch.off()
			watch.report(b)
		})
	}
}
