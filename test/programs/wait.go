package programs

import (
	"fmt"
	"testing"
	"time"
)

// Eventually polls until check returns nil, and fails the test with its last
// error after the deadline.
func Eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	if err := Poll(within, check); err != nil {
		t.Fatalf("%s: not within %s: %v", what, within, err)
	}
}

// Poll returns nil once check does, or its last error after the deadline.
func Poll(within time.Duration, check func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return fmt.Errorf("%w (the deadline has passed)", err)
		}
	}
}
