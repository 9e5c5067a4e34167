package work

import (
	"cmp"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// ClockError is the delay with which a leader acts after an instant of a record: the instant
// may come from another leader's clock.
const ClockError = 2 * time.Second

// OverdueEnd is the kind of the end of a unit that has not started in time, and a text with the
// reason and the numbers.
func (u *Unit) OverdueEnd() (record.EndKind, string) {
	kind, text := u.explainOverdue()
	return kind, string(kind) + ": " + text
}

func (u *Unit) explainOverdue() (record.EndKind, string) {
	switch {
	case u.Job != nil && u.Job.Gang:
		return record.GangTimeout, fmt.Sprintf("the %d members that start together had no place within %s", u.Job.Units[0].Record.Members, u.Job.Doc.MaxWait())
	case u.Job != nil:
		return record.WaitTimeout, fmt.Sprintf("it had no place within %s", u.Job.Doc.MaxWait())
	case u.Group == nil:
		return record.WaitTimeout, fmt.Sprintf("it had no place within %s", u.Allocation.Group().MaxWait)
	case u.Group.HasFormed():
		return record.GangTimeout, fmt.Sprintf("its group %s runs, and had no place for it within %s", u.Group.ID, u.Group.Rule.MaxWait)
	}
	arrived := 0
	for _, o := range u.Group.Units {
		if o.Stored != 0 && (o.Waiting() || IsOverdueEnd(o)) {
			arrived++
		}
	}
	if arrived < u.Group.Rule.MinMembers {
		return record.GangTimeout, fmt.Sprintf("%d of %d members of group %s had arrived within %s", arrived, u.Group.Rule.MinMembers, u.Group.ID, u.Group.Rule.MaxWait)
	}
	return record.GangTimeout, fmt.Sprintf("the %d members of group %s had no place within %s", u.Group.Rule.MinMembers, u.Group.ID, u.Group.Rule.MaxWait)
}

// TimeLimit is a limit of the running time of a unit.
type TimeLimit struct {
	since   int64 // an instant, in milliseconds
	Length  time.Duration
	Outcome record.Outcome
}

// End is the instant at which the unit is ended.
func (t TimeLimit) End() int64 { return t.since + (t.Length + ClockError).Milliseconds() }

// LimitOf is the limit of a unit's time that ends first; false without a limit. There is no
// limit either where a leader of an older version has stored no instant of the start.
func LimitOf(a *Attempt) (first TimeLimit, limited bool) {
	if a.Ready.AtMillis == 0 || a.Unit.Record.Replaces { // the limit of the gang counts
		return TimeLimit{}, false
	}
	return a.Unit.limitSince(a.Ready.AtMillis)
}

// limitSince is LimitOf for a unit all of whose members are held since an instant.
func (u *Unit) limitSince(instant int64) (first TimeLimit, limited bool) {
	ttl, deadline := u.limits()
	if seconds := deadline; seconds != nil {
		since := cmp.Or(u.Record.ActiveSinceMillis, instant)
		length := longestLimit
		if *seconds < int64(longestLimit/time.Second) {
			length = time.Duration(*seconds) * time.Second
		}
		first, limited = TimeLimit{since, length, record.Outcome{
			Phase: string(api.Failed), End: record.DeadlineExceeded,
			Message: fmt.Sprintf("%s: the unit has run for the %s of activeDeadlineSeconds", record.DeadlineExceeded, length),
		}}, true
	}
	if ttl == 0 {
		return first, limited
	}
	since := cmp.Or(u.Record.FirstReadyMillis, instant)
	t := TimeLimit{since, min(ttl, longestLimit), record.Outcome{
		Phase: string(api.Succeeded), End: record.TTLExpired,
		Message: fmt.Sprintf("%s: the %s of ttl have passed since the unit has first run", record.TTLExpired, ttl),
	}}
	if !limited || t.End() < first.End() {
		return t, true
	}
	return first, limited
}

// limits are the ttl of the unit, and the deadline of the job in seconds; 0 and nil for none.
func (u *Unit) limits() (ttl time.Duration, deadline *int64) {
	text := ""
	switch {
	case u.Allocation != nil:
		text = u.Allocation.Spec.TTL
	case u.Job != nil && u.Job.Doc != nil:
		text, deadline = u.Job.Doc.Spec.Template.Spec.TTL, u.Job.Doc.Spec.ActiveDeadlineSeconds
	}
	if d, err := time.ParseDuration(text); err == nil { // others were refused at the submission
		ttl = d
	}
	return ttl, deadline
}

// longestLimit bounds a limit against the overflow of an instant.
const longestLimit = 100 * 365 * 24 * time.Hour
