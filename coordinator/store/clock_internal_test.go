package store

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestABubbleThatComputesForLongDoesNotSleep: leaders in fake time keep their office on a
// busy machine. The process may stand still between two clocks, so the least of many
// readings counts.
func TestABubbleThatComputesForLongDoesNotSleep(t *testing.T) {
	const long = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		i := instantNow()
		for began := read(unix.CLOCK_MONOTONIC); read(unix.CLOCK_MONOTONIC)-began < long; {
			continue
		}
		least := i.since()
		for range 1000 {
			least = min(least, i.since())
		}
		if least >= long/2 {
			t.Errorf("%v have passed in fake time, want about 0", least)
		}
		time.Sleep(time.Hour)
		if got := i.since(); got < time.Hour {
			t.Errorf("%v have passed, want an hour at least", got)
		}
	})
}

// TestTheTimeOfSleepCounts: the host's sleep since an instant is a part of the age.
func TestTheTimeOfSleepCounts(t *testing.T) {
	i := instantNow()
	i.slept -= time.Minute // as if the host had slept since
	if got := i.since(); got < time.Minute {
		t.Errorf("%v have passed, want a minute at least", got)
	}
}
