package nvml

import (
	"fmt"
	"time"

	"github.com/musterd/muster/devices"
)

// Change is one report of a Watch.
type Change = devices.Change

// WatchOptions say how closely a Watch looks. A field that is 0 has its
// default; negative ones are refused.
type WatchOptions struct {
	// Poll is the time between two readings of error counters, partitions,
	// presence, use and running processes, of some ten calls into the driver for each card, and between two
	// attempts to reach a driver that has gone; 10 s. XIDs do not wait for it.
	Poll time.Duration
	// Rediscover is the time between two discoveries; 5 min. At each the library
	// is shut down and started again, since it takes up a card that was added, or
	// that was reset after it fell off the bus, at its start alone. XIDs of that
	// moment are lost. On a host without persistence mode the start can take
	// seconds for each card: run nvidia-persistenced there.
	Rediscover time.Duration
	// HangAfter is how long one call may take before it is reported as hung; 30 s.
	HangAfter time.Duration
	// Retry is the time between two looks for a driver that is absent, or that
	// fails to start; 30 s.
	Retry time.Duration
	// Hurry, where not nil, asks for the next poll now: it comes within a second.
	Hurry <-chan struct{}
	// Absent lists the devices, by UUID, that the caller has reported as lost
	// already: their return is an event.
	Absent []string
}

func (o WatchOptions) withDefaults() (WatchOptions, error) {
	for _, f := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
	}{
		{"Poll", &o.Poll, 10 * time.Second},
		{"Rediscover", &o.Rediscover, 5 * time.Minute},
		{"HangAfter", &o.HangAfter, 30 * time.Second},
		{"Retry", &o.Retry, 30 * time.Second},
	} {
		switch {
		case *f.value < 0:
			return o, fmt.Errorf("%s: %s is negative", f.name, *f.value)
		case *f.value == 0:
			*f.value = f.standard
		}
	}
	return o, nil
}
