package store

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// instant is a moment by both clocks that never jump. Go's own stands still
// while the host sleeps, and the boot-time clock does not: a lease that a store
// elsewhere counts down ends for the one as for the other.
type instant struct {
	running time.Time     // by the monotonic clock
	boot    time.Duration // since the host booted, sleep included
}

func instantNow() instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("store: read CLOCK_BOOTTIME: %v", err))
	}
	return instant{time.Now(), time.Duration(t.Nano())}
}

// since is the time that has passed since i, by the clock that says more.
func (i instant) since() time.Duration {
	now := instantNow()
	return max(now.running.Sub(i.running), now.boot-i.boot)
}
