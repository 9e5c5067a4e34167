package window

import (
	"slices"
	"time"
)

// Count counts events in a sliding window, which is divided into slots of equal
// width. An event leaves the window with its slot, so the window covers between
// slots-1 and slots widths. Events of an earlier time than the newest event count
// as events of its slot. One goroutine owns a Count.
//
// Invariant: slots[k mod len] is the count of slot k, for newest-len < k <= newest.
type Count struct {
	width  time.Duration
	slots  []int64
	newest int64 // the number of the newest slot
}

// NewCount returns a count without events. There is at least one slot, of at
// least 1 ms.
func NewCount(slots int, width time.Duration) *Count {
	return &Count{width: max(width, time.Millisecond), slots: make([]int64, max(slots, 1))}
}

// Add counts events at a time.
func (c *Count) Add(now time.Time, events int64) {
	at, size := slotOf(now, c.width), int64(len(c.slots))
	if at > c.newest {
		for k := max(c.newest+1, at-size+1); k <= at; k++ {
			c.slots[k%size] = 0
		}
		c.newest = at
	}
	c.slots[c.newest%size] += events
}

// Restore counts past events, in any order. Events before the window do not count.
func (c *Count) Restore(now time.Time, at []time.Time) {
	slices.SortFunc(at, time.Time.Compare)
	for _, instant := range at {
		if now.Sub(instant) < c.width*time.Duration(len(c.slots)) {
			c.Add(instant, 1)
		}
	}
}

// Sum is the number of events in the window that ends at a time.
func (c *Count) Sum(now time.Time) int64 {
	at, size := max(slotOf(now, c.width), c.newest), int64(len(c.slots))
	var sum int64
	for k := max(at-size+1, 0); k <= c.newest; k++ {
		sum += c.slots[k%size]
	}
	return sum
}
