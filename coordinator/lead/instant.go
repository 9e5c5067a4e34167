package lead

import "time"

// This file is about instants that records carry: milliseconds of the leader's
// clock since 1970. They are for people, and for a later leader that shows them;
// no safety rests on them.

// millis is the instant of the present input. The leader's clock is the wall clock
// at its election and the monotonic time since: a step of the wall clock does not
// move an instant within one term.
func (l *Leader) millis() int64 { return l.elected.Add(l.now.Sub(l.elected)).UnixMilli() }

// instantOf is the time of an instant; the zero value for 0.
func instantOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// millisOf is the inverse of instantOf.
func millisOf(instant time.Time) int64 {
	if instant.IsZero() {
		return 0
	}
	return instant.UnixMilli()
}

// noticeOf is the instant at which victims were given notice: they are EVICTING by
// one Txn.
func noticeOf(victims []*attempt) time.Time {
	for _, v := range victims {
		if !v.noticed.IsZero() {
			return v.noticed
		}
	}
	return time.Time{}
}
