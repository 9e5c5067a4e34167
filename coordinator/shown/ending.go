package shown

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
)

// End is the begin of an end: an owner's request or a notice of an eviction.
type End struct {
	// Millis is the instant, in milliseconds since 1970; 0 where an older version
	// has written the record.
	Millis       int64
	GraceSeconds int64
	Reason       string
}

// Ending is the end of a unit that is Terminating. Asked is its owner's request,
// Notice its eviction; at least one of them is set.
type Ending struct {
	Asked, Notice *End
}

// EndingOf reads the end of a unit out of its key and its transaction's record,
// which is EVICTING or RELEASING.
func EndingOf(u *record.Unit, rec *record.Tx) (e Ending) {
	of := &End{Millis: rec.EndingMillis, GraceSeconds: rec.GraceSeconds, Reason: rec.Reason}
	switch {
	case rec.State != grant.RecordEvicting && rec.State != grant.RecordReleasing:
		return e
	case rec.State == grant.RecordReleasing && !rec.Evicted:
		e.Asked = of
		return e
	}
	e.Notice = of
	if w := u.Ending; w != nil {
		e.Asked = &End{Millis: w.AskedMillis, GraceSeconds: w.GraceSeconds, Reason: w.Reason}
	}
	return e
}

// ShowEnded shows a member whose deletion is durable and that holds nothing, as
// it was asked to end.
func (m *Member) ShowEnded(asked End) *api.Allocation {
	a := m.Show()
	a.Status.Phase = api.Terminating
	e := Ending{Asked: &asked}
	e.show(&a.Metadata, &a.Status.Conditions)
	return a
}

// show adds the instant, the grace and the condition Terminating, before the others.
func (e Ending) show(o *api.ObjectMeta, conditions *[]api.Condition) {
	c := api.Condition{Type: "Terminating", Status: "True", Reason: "UserRequested", Message: "Graceful termination in progress"}
	switch {
	case e.Notice != nil && e.Asked != nil:
		c.Message = fmt.Sprintf("it is being evicted, with %d s of grace (%s), and is gone once that is over", e.Notice.GraceSeconds, e.Notice.Reason)
	case e.Notice != nil:
		c.Reason, c.Message = "Evicted", fmt.Sprintf("it is being evicted, with %d s of grace: %s", e.Notice.GraceSeconds, e.Notice.Reason)
	}
	c.LastTransitionTime = e.first()
	e.showDeletion(o)
	*conditions = append([]api.Condition{c}, *conditions...)
}

// showDeletion adds the instant and the grace of the end: the owner's, or the
// eviction's where no owner has asked.
func (e Ending) showDeletion(o *api.ObjectMeta) {
	end := e.Asked
	if end == nil {
		end = e.Notice
	}
	if end == nil {
		return
	}
	grace := end.GraceSeconds
	o.DeletionTimestamp, o.DeletionGracePeriodSeconds = Instant(end.Millis), &grace
}

// first is the instant at which the unit became Terminating, "" if that is not
// recorded.
func (e Ending) first() string {
	if e.Notice != nil { // a request that came before would have ended the unit
		return Instant(e.Notice.Millis)
	}
	if e.Asked != nil {
		return Instant(e.Asked.Millis)
	}
	return ""
}

// Instant is an instant in milliseconds as objects show it: RFC 3339, in whole
// seconds; "" for 0.
func Instant(millis int64) string {
	if millis == 0 {
		return ""
	}
	return time.UnixMilli(millis).UTC().Format(time.RFC3339)
}

// GrantState is the API's word for a grant's state.
func GrantState(s grant.State) string {
	if s == grant.Tombstone {
		return "freed"
	}
	return strings.ToLower(s.String())
}
