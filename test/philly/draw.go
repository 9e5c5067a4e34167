package philly

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// This file draws jobs of the trace's shape from a seed, for tests that may not need
// the trace. Integers alone are drawn, so every machine draws the same jobs.

// at are the per mille at which a quantiles has its values.
var at = [16]int64{0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 980, 990, 995, 999, 1000}

// quantiles are those of a number in the trace.
type quantiles [len(at)]int64

// draw draws a number: between two quantiles each is as likely.
func (q *quantiles) draw(r *rand.Rand) int64 {
	u := r.Int64N(1000)
	i := 0
	for at[i+1] <= u {
		i++
	}
	return q[i] + r.Int64N(max(1, q[i+1]-q[i]))
}

// gaps are the seconds between two arrivals. The longest, of almost three days, is
// replaced by three hours.
var gaps = quantiles{0, 1, 2, 3, 5, 8, 13, 26, 101, 361, 599, 600, 601, 724, 2238, 10_800}

// size is a number of GPUs, and the seconds for which jobs of that size run.
type size struct {
	gpus    int
	weight  int // of 82,247 jobs
	seconds *quantiles
}

var large = &quantiles{1, 69, 345, 880, 3165, 21_137, 53_301, 72_685, 158_329, 246_825, 438_912, 610_860, 891_298, 1_152_387, 1_369_876, 1_710_643}

var sizes = []size{
	{1, 76_627, &quantiles{1, 62, 76, 215, 600, 1117, 1728, 2464, 3754, 8512, 19_137, 68_245, 135_386, 266_433, 863_786, 3_256_045}},
	{2, 1818, &quantiles{2, 11, 15, 17, 19, 21, 25, 33, 148, 72_361, 197_004, 343_700, 510_066, 786_523, 1_463_703, 2_582_803}},
	{4, 1870, &quantiles{3, 136, 400, 1695, 7457, 17_388, 36_253, 78_636, 106_275, 184_426, 273_515, 528_732, 906_798, 1_192_621, 2_416_865, 2_750_674}},
	{8, 1643, &quantiles{1, 216, 783, 3940, 12_351, 23_683, 64_753, 140_659, 202_915, 350_272, 525_503, 792_895, 1_051_666, 1_961_780, 2_655_194, 4_628_226}},
	{16, 206, large}, {32, 74, large}, {64, 6, large}, {128, 3, large},
}

// tenants are how many jobs the tenants have of 1,000.
var tenants = []int{501, 196, 121, 90, 24, 18, 17, 14, 9, 5, 5}

// pick picks an index by weights that sum to all.
func pick(r *rand.Rand, n, all int, weight func(int) int) int {
	u := r.IntN(all)
	for i := range n {
		if u -= weight(i); u < 0 {
			return i
		}
	}
	panic(fmt.Sprintf("philly: the weights sum to %d less than %d", u+1, all))
}

// Draw draws so many jobs from a seed, ascending by arrival, with the trace's sizes,
// durations and tenants. They arrive press times as fast as those of the trace, so that
// few jobs fill a cluster.
func Draw(seed uint64, count int, press time.Duration) []Job {
	r := rand.New(rand.NewPCG(seed, 1))
	jobs := make([]Job, count)
	arrival := time.Duration(0)
	for i := range jobs {
		s := sizes[pick(r, len(sizes), 82_247, func(i int) int { return sizes[i].weight })]
		tenant := pick(r, len(tenants), 1000, func(i int) int { return tenants[i] })
		jobs[i] = Job{arrival, time.Duration(max(1, s.seconds.draw(r))) * time.Second, s.gpus, fmt.Sprint("t", tenant)}
		arrival += time.Duration(gaps.draw(r)) * time.Second / press
	}
	return jobs
}
