package store

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// instant is a moment by Go's monotonic clock, which stands still while the host
// sleeps, and by the host's time of sleep: a store elsewhere counts a lease down
// meanwhile. The time of sleep is the difference of two clocks of the kernel. A bubble
// of testing/synctest has a clock apart from the kernel's, and this difference is zero
// there, however long the bubble computes.
type instant struct {
	running time.Time
	slept   time.Duration // since the boot, at least
}

func instantNow() instant {
	least, _ := slept()
	return instant{time.Now(), least}
}

// since is the time since i, and never less.
func (i instant) since() time.Duration {
	_, most := slept()
	return time.Since(i.running) + max(0, most-i.slept)
}

// slept is the host's time of sleep since the boot, between least and most: the process
// may stand still between two readings.
func slept() (least, most time.Duration) {
	before, running, after := read(unix.CLOCK_BOOTTIME), read(unix.CLOCK_MONOTONIC), read(unix.CLOCK_BOOTTIME)
	return before - running, after - running
}

func read(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(fmt.Sprintf("store: read clock %d: %v", clock, err))
	}
	return time.Duration(t.Nano())
}
