package window

import (
	"math"
	"slices"
	"time"
)

// buckets is the number of buckets of a Histogram: from 1 ms to 32 days in steps
// of a quarter of a doubling, so a quantile is at most 19 % too high.
const buckets = 126

var bounds = makeBounds()

// makeBounds makes the upper bounds of the buckets.
func makeBounds() (upper [buckets]time.Duration) {
	for i := range upper {
		upper[i] = time.Duration(math.Ceil(float64(time.Millisecond) * math.Exp2(float64(i)/4)))
	}
	return upper
}

// Histogram counts durations by their length. The zero value has no durations. It
// takes about 1 KiB, however many durations are counted; copies are independent.
type Histogram struct {
	counts   [buckets + 1]uint64 // the last one is of durations beyond all bounds
	count    uint64
	micros   int64 // the sum, in microseconds
	greatest time.Duration
}

// Add counts a duration; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	at, _ := slices.BinarySearch(bounds[:], d)
	h.counts[at]++
	h.count++
	h.micros += d.Microseconds()
	h.greatest = max(h.greatest, d)
}

// Count is the number of durations.
func (h *Histogram) Count() uint64 { return h.count }

// Mean is the mean duration, to the microsecond; 0 without durations.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return time.Duration(h.micros/int64(h.count)) * time.Microsecond //nolint:gosec // a count of events
}

// Quantile is a duration that at least a part of the durations, in thousandths, do
// not exceed: the bound of their bucket, at most the greatest duration; 0 without
// durations.
func (h *Histogram) Quantile(thousandths uint64) time.Duration {
	rank := (h.count*min(thousandths, 1000) + 999) / 1000
	var below uint64
	for i, upper := range bounds {
		if below += h.counts[i]; below >= rank {
			return min(upper, h.greatest)
		}
	}
	return h.greatest
}
