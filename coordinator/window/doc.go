// Package window keeps numbers about the recent past in bounded memory: events in
// a sliding window (Count), an amount that changes in steps (Level), and
// durations (Histogram). The values are plain: each method takes the present
// time, and nothing here reads a clock.
//
// The package measures and decides nothing. Results that are not counts are
// rounded to whole base units.
package window

import "time"

// slotOf is the number of the slot of a width that an instant is in.
func slotOf(now time.Time, width time.Duration) int64 {
	return now.UnixMilli() / width.Milliseconds()
}
