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
	u := a.unit
	if u.job == nil || u.job.doc == nil || a.ready.instant == 0 {
		return timeLimit{}, false
	}
	if seconds := u.job.doc.Spec.ActiveDeadlineSeconds; seconds != nil {
		since := cmp.Or(u.record.ActiveSinceMillis, a.ready.instant)
		length := longestLimit
		if *seconds < int64(longestLimit/time.Second) {
			length = time.Duration(*seconds) * time.Second
		}
		first, limited = timeLimit{since, length, record.Outcome{
			Phase: string(api.Failed), End: record.DeadlineExceeded,
			Message: fmt.Sprintf("%s: the unit has run for the %s of activeDeadlineSeconds", record.DeadlineExceeded, length),
		}}, true
	}
	ttl, err := time.ParseDuration(u.job.doc.Spec.Template.Spec.TTL)
	if err != nil { // none is given: others were refused at the submission
		return first, limited
	}
	since := u.record.FirstReadyMillis
	if since == 0 {
		since = a.ready.instant
	}
	t := timeLimit{since, min(ttl, longestLimit), record.Outcome{
		Phase: string(api.Succeeded), End: record.TTLExpired,
		Message: fmt.Sprintf("%s: the %s of ttl have passed since the unit has first run", record.TTLExpired, ttl),
	}}
	if !limited || t.end() < first.end() {
		return t, true
	}
	return first, limited
}

// longestLimit bounds a limit, so that no instant overflows.
const longestLimit = 100 * 365 * 24 * time.Hour
