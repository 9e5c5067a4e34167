package enroll

import (
	"fmt"
	"testing"
	"time"
)

// All refusals together have a limit: guesses from many addresses wait for a second, and an
// address without a refusal does not wait.
func TestAllRefusalsTogetherHaveALimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := newFailures(nil)
	address := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i/256, i%256) }
	for i := range allBurst - 1 {
		f.add(address(i), fmt.Sprint("token-", i), now)
	}
	if got := f.wait(address(0), "", now); got != 0 {
		t.Errorf("before the last refusal of the burst an address waits %s, want 0", got)
	}
	f.add(address(allBurst), "", now)
	if got := f.wait(address(0), "", now); got <= 0 || got > time.Second {
		t.Errorf("an address with a refusal waits %s, want a wait of at most a second", got)
	}
	if got := f.wait("10.9.9.9", "", now); got != 0 {
		t.Errorf("an address without a refusal waits %s, want 0", got)
	}
	if got := f.wait(address(0), "", now.Add(time.Second)); got != 0 {
		t.Errorf("a second later the address waits %s, want 0", got)
	}
}

// Each address and each token id has a limit, and is free again some seconds later.
func TestRefusalsOfAnAddressAndOfATokenHaveLimits(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		from, token func(i int) string
		burst       int
		free        time.Duration // until the next try
	}{
		"an address": {func(int) string { return "10.0.0.1" }, func(i int) string { return fmt.Sprint("token-", i) }, addressBurst, 3 * time.Second},
		"a token":    {func(i int) string { return fmt.Sprint("10.0.0.", i) }, func(int) string { return "token" }, tokenBurst, 6 * time.Second},
	} {
		f := newFailures(nil)
		for i := range c.burst - 1 {
			f.add(c.from(i), c.token(i), now)
		}
		if got := f.wait(c.from(0), c.token(0), now); got != 0 {
			t.Errorf("%s waits %s before its burst is used, want 0", name, got)
		}
		f.add(c.from(c.burst), c.token(c.burst), now)
		if got := f.wait(c.from(0), c.token(0), now); got <= 0 {
			t.Errorf("%s does not wait once its burst is used", name)
		}
		if got := f.wait(c.from(0), c.token(0), now.Add(c.free)); got != 0 {
			t.Errorf("%s waits %s after %s, want 0", name, got, c.free)
		}
	}
}
