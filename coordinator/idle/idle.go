// Package idle decides since how much measured time the GPUs of a unit are idle. It decides
// nothing about a unit whose GPUs are not measured.
//
// The members' counters are the only input: by device, the time for which the use was measured
// and the part of that time in which the device computed. So a lost report, a silent host and a
// clock that is wrong make no device idle.
package idle

import (
	"cmp"
	"slices"
	"time"
)

// Step is the shortest measured time that the use of devices is judged over. A unit is used
// where it reaches the rule's percentage over one step; a shorter burst counts as its part of
// the step.
const Step = time.Minute

// Rule says which use is idle.
type Rule struct {
	Below int64         // percent, 1 to 100
	For   time.Duration // of measured time
}

// Counter is the use of one device by a member, since the member's start. Neither sum falls
// while the member runs.
type Counter struct {
	Member int
	UUID   string
	// Measured is the time for which the use was measured, Busy the part of it in which the
	// device computed; in milliseconds.
	Measured, Busy int64
}

// compare orders counters by member and device.
func (c Counter) compare(o Counter) int {
	return cmp.Or(cmp.Compare(c.Member, o.Member), cmp.Compare(c.UUID, o.UUID))
}

// longest bounds the time of a device that counts in one step, in milliseconds: 49 days. So no
// sum overflows.
const longest = 1 << 32

// Clock is the time for which the devices of a unit are idle. The zero value has seen nothing.
//
// Invariant: last is ascending by member and device.
type Clock struct {
	last  []Counter // at the end of the last step
	below int64     // of the rule
	idle  int64     // milliseconds
}

// Use is the verdict on a step.
type Use int

// The verdicts.
const (
	Unknown Use = iota // the step is not over: too little is measured
	Idle               // the use was below the rule's percentage
	Used
)

// Idle is the measured time for which each step was idle.
func (c *Clock) Idle() time.Duration { return time.Duration(c.idle) * time.Millisecond }

// Take judges the step from the last counters to these, which the clock keeps. counters are those
// of all devices of the unit; none means that a device is not measured, and the time begins anew.
// So it does after a change of the devices or of the percentage, and a new start of a member.
//
// The first step begins at the start of the members: it is idle where their devices have been
// used so little in all that no step can have been a used one. So a new leader finds at once the
// units that never used their devices, and begins anew with all others.
func (c *Clock) Take(counters []Counter, r Rule) Use {
	slices.SortFunc(counters, Counter.compare)
	if !follows(c.last, counters) || c.below != r.Below {
		c.last, c.below, c.idle = slices.Clone(counters), r.Below, 0
		measured, _, busy := sums(make([]Counter, len(counters)), counters)
		if len(counters) > 0 && busy*100 < r.Below*Step.Milliseconds()*int64(len(counters)) {
			c.idle = measured
		}
		return Unknown
	}
	least, measured, busy := sums(c.last, counters)
	if len(counters) == 0 || least < Step.Milliseconds() {
		return Unknown
	}
	copy(c.last, counters)
	if busy*100 >= r.Below*measured {
		c.idle = 0
		return Used
	}
	c.idle += least
	return Idle
}

// follows reports whether counters go on from former ones.
func follows(former, counters []Counter) bool {
	return slices.EqualFunc(former, counters, func(a, b Counter) bool {
		return a.compare(b) == 0 && a.Measured <= b.Measured && a.Busy <= b.Busy
	})
}

// sums are what two sets of the same counters differ by: the least measured time of a device, and
// the sums over all devices.
func sums(from, to []Counter) (least, measured, busy int64) {
	least = longest
	for i := range to {
		m := min(to[i].Measured-from[i].Measured, longest)
		least = min(least, m)
		measured += m
		busy += min(to[i].Busy-from[i].Busy, m)
	}
	return least, measured, busy
}
