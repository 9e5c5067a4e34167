package post

import "time"

// This file is about instants that records carry: milliseconds of the leader's
// clock since 1970. They are for people, and for a later leader that shows them;
// no safety rests on them.

// Now is the time of the present input.
func (p *Post) Now() time.Time { return p.now }

// Elect begins the clock of the term, at the load of the store.
func (p *Post) Elect(now time.Time) {
	if p.open || p.lastToken > 0 {
		panic("post: the clock of a term begins before the first question")
	}
	p.elected = now
}

// Elected is when the clock of the term began.
func (p *Post) Elected() time.Time { return p.elected }

// Millis is the instant of the present input. The leader's clock is the time of the load
// and the monotonic time since: a step of the wall clock moves no instant of a term.
func (p *Post) Millis() int64 { return p.elected.Add(p.now.Sub(p.elected)).UnixMilli() }

// InstantOf is the time of an instant; the zero value for 0.
func InstantOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// MillisOf is the inverse of InstantOf.
func MillisOf(instant time.Time) int64 {
	if instant.IsZero() {
		return 0
	}
	return instant.UnixMilli()
}

// Stamp is the instant of the present input as a text: a step of the wall clock moves neither.
func (p *Post) Stamp() string { return Stamp(time.UnixMilli(p.Millis())) }

// Stamp is a time as records carry it: for people, never compared.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
