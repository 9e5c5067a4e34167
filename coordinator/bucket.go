package coordinator

import "time"

// bucket limits how often something is done: burst times at once, then once per
// interval. The zero value is full.
type bucket struct {
	full time.Time // when it is full again
}

// rate is a bucket's interval and burst.
type rate struct {
	every time.Duration
	burst int
}

// take reports whether it may be done now, and counts it.
func (b *bucket) take(now time.Time, r rate) bool {
	at := now
	if b.full.After(now) {
		at = b.full
	}
	if at.Sub(now) > r.every*time.Duration(r.burst-1) {
		return false
	}
	b.full = at.Add(r.every)
	return true
}

// spend counts a cost in time, and returns how long to wait until no more than
// burst is owed.
func (b *bucket) spend(now time.Time, cost, burst time.Duration) time.Duration {
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(cost)
	return max(0, b.full.Sub(now)-burst)
}

// The limits of one node.
var (
	logRate    = rate{time.Second, 20}            // lines about it
	answerRate = rate{4 * time.Millisecond, 1024} // Forget, Abort and Resync without an attempt
	fenceRate  = rate{time.Second, 64}            // ABORTED records for promises that the node reports
	wakeRate   = rate{100 * time.Millisecond, 20} // wake-ups of waiting units by messages of the node
	idleRate   = rate{20 * time.Millisecond, 64}  // messages that change nothing
)

// longestForeign is the most bytes of an agent's text that a log line, a
// condition or a record of the store takes.
const longestForeign = 512

// clip is a text of at most longestForeign bytes, cut between characters.
func clip(text string) string { return clipTo(text, longestForeign) }

func clipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}
