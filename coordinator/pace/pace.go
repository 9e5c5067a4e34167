// Package pace limits how often something is done.
package pace

import "time"

// Bucket limits how often something is done: burst times at once, then once per
// interval. The zero value is full.
type Bucket struct {
	full time.Time // when it is full again
}

// Rate is a Bucket's interval and burst.
type Rate struct {
	Every time.Duration
	Burst int
}

// Take reports whether it may be done now, and counts it.
func (b *Bucket) Take(now time.Time, r Rate) bool {
	at := now
	if b.full.After(now) {
		at = b.full
	}
	if at.Sub(now) > r.Every*time.Duration(r.Burst-1) {
		return false
	}
	b.full = at.Add(r.Every)
	return true
}

// Spend counts a cost in time, and returns how long to wait until no more than
// burst is owed.
func (b *Bucket) Spend(now time.Time, cost, burst time.Duration) time.Duration {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(cost)
	return max(0, b.full.Sub(now)-burst)
}
