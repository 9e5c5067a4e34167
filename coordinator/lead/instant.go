package lead

import "time"

// This file is about instants that records carry: milliseconds of the leader's
// clock since 1970. They are for people, and for a later leader that shows them;
// no safety rests on them.

// millis is the instant of the present input. The leader's clock is the time of Load
// and the monotonic time since: a step of the wall clock moves no instant of a term.
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

// stamp is the instant of the present input as a text: a step of the wall clock moves neither.
func (l *Leader) stamp() string { return Stamp(time.UnixMilli(l.millis())) }

// Stamp is a time as records carry it: for people, never compared.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// startBy is the instant until which something may wait that has arrived at since, 0
// for no end.
func startBy(since int64, wait time.Duration) int64 {
	if wait <= 0 {
		return 0
	}
	return since + max(1, wait.Milliseconds())
}

// setStartBy sets the instant until which a new unit may wait.
func (l *Leader) setStartBy(u *unit, wait time.Duration) { u.setStartBy(startBy(l.millis(), wait)) }
