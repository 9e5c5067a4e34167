package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the kernel's boot-time clock, counted from the Unix epoch: it
// goes on while the host sleeps, survives the process, and never jumps.
func bootTime() time.Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("agent: read CLOCK_BOOTTIME: %v", err))
	}
	return time.Unix(0, t.Nano())
}

// backoff is the wait before attempt n (from 0): doubling from least to most,
// with a quarter of jitter so that a cluster does not act in step.
func backoff(n int, least, most time.Duration) time.Duration {
	d := min(least<<min(n, 20), most)
	return d - time.Duration(rand.Int64N(int64(d)/4+1))
}

// pause waits, or less if ctx ends; it reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool { return pauseUntil(ctx, d, nil) }

// pauseUntil is pause that also ends when enough does.
func pauseUntil(ctx context.Context, d time.Duration, enough <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-enough:
		return true
	case <-ctx.Done():
		return false
	}
}
