package lead

import (
	"cmp"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// timeLimit is a limit of the time that a unit runs.
type timeLimit struct {
	since   int64 // an instant, in milliseconds
	length  time.Duration
	outcome record.Outcome
}

// end is the instant at which the unit is ended.
func (t timeLimit) end() int64 { return t.since + (t.length + clockError).Milliseconds() }

// limitOf is the limit of a unit's time that ends first; false where there is none. There
// is none either where a leader of an older version has stored no instant of the start.
func limitOf(a *attempt) (first timeLimit, limited bool) {
	if a.ready.AtMillis == 0 || a.unit.record.Replaces { // that of its gang
		return timeLimit{}, false
	}
	return a.unit.limitSince(a.ready.AtMillis)
}

// limitSince is limitOf for a unit all of whose members are held since an instant.
func (u *unit) limitSince(instant int64) (first timeLimit, limited bool) {
	ttl, deadline := u.limits()
	if seconds := deadline; seconds != nil {
		since := cmp.Or(u.record.ActiveSinceMillis, instant)
		length := longestLimit
		if *seconds < int64(longestLimit/time.Second) {
			length = time.Duration(*seconds) * time.Second
		}
		first, limited = timeLimit{since, length, record.Outcome{
			Phase: string(api.Failed), End: record.DeadlineExceeded,
			Message: fmt.Sprintf("%s: the unit has run for the %s of activeDeadlineSeconds", record.DeadlineExceeded, length),
		}}, true
	}
	if ttl == 0 {
		return first, limited
	}
	since := cmp.Or(u.record.FirstReadyMillis, instant)
	t := timeLimit{since, min(ttl, longestLimit), record.Outcome{
		Phase: string(api.Succeeded), End: record.TTLExpired,
		Message: fmt.Sprintf("%s: the %s of ttl have passed since the unit has first run", record.TTLExpired, ttl),
	}}
	if !limited || t.end() < first.end() {
		return t, true
	}
	return first, limited
}

// limits are the ttl of the unit, and the deadline of its job in seconds; 0 and nil for
// none.
func (u *unit) limits() (ttl time.Duration, deadline *int64) {
	text := ""
	switch {
	case u.allocation != nil:
		text = u.allocation.Spec.TTL
	case u.job != nil && u.job.doc != nil:
		text, deadline = u.job.doc.Spec.Template.Spec.TTL, u.job.doc.Spec.ActiveDeadlineSeconds
	}
	if d, err := time.ParseDuration(text); err == nil { // others were refused at the submission
		ttl = d
	}
	return ttl, deadline
}

// longestLimit bounds a limit, so that no instant overflows.
const longestLimit = 100 * 365 * 24 * time.Hour
