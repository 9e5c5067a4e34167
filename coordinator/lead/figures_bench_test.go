package lead_test

import (
	"fmt"
	"testing"
	"time"
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

// BenchmarkFiguresStep is the longest that one visit of the loop takes: the begin of a
// count, or one step.
func BenchmarkFiguresStep(b *testing.B) {
	for _, hosts := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", hosts), func(b *testing.B) {
			c := newCrowd(b, hosts, 4, 8, 0, 1)
			var longest, sum time.Duration
			steps := 0
			for b.Loop() {
				began := time.Now()
				count := c.Leader().CountFigures()
				for done := false; !done; steps++ {
					took := time.Since(began)
					longest, sum = max(longest, took), sum+took
					began = time.Now()
					done = count.Step()
				}
				took := time.Since(began)
				longest, sum = max(longest, took), sum+took
			}
			b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
			b.ReportMetric(float64(sum.Microseconds())/float64(steps+b.N), "visit-µs")
			b.ReportMetric(float64(steps)/float64(b.N), "steps")
		})
	}
}
