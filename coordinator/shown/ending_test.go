package shown_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/grant"
)

func TestAnEndIsShownAsItsRecordHasIt(t *testing.T) {
	const asked, noticed = 1_767_323_045_250, 1_767_323_055_999 // 03:04:05 and 03:04:15
	wish := &record.Cancellation{Reason: "enough", GraceSeconds: 7, AskedMillis: asked}
	grace := func(s int64) *int64 { return &s }
	for name, c := range map[string]struct {
		state   grant.RecordState
		evicted bool
		millis  int64
		wish    *record.Cancellation
		at      string
		grace   *int64
		want    api.Condition
	}{
		"its owner has deleted it": {
			state: grant.RecordReleasing, millis: asked, at: "2026-01-02T03:04:05Z", grace: grace(30),
			want: api.Condition{Type: "Terminating", Status: "True", Reason: "UserRequested", Message: "Graceful termination in progress", LastTransitionTime: "2026-01-02T03:04:05Z"},
		},
		"its owner has deleted it, says a record of an older version": {
			state: grant.RecordReleasing, grace: grace(30),
			want: api.Condition{Type: "Terminating", Status: "True", Reason: "UserRequested", Message: "Graceful termination in progress"},
		},
		"it is under notice": {
			state: grant.RecordEvicting, evicted: true, millis: noticed, at: "2026-01-02T03:04:15Z", grace: grace(30),
			want: api.Condition{Type: "Terminating", Status: "True", Reason: "Evicted", Message: "it is being evicted, with 30 s of grace: drained", LastTransitionTime: "2026-01-02T03:04:15Z"},
		},
		"it has left after a notice": {
			state: grant.RecordReleasing, evicted: true, millis: noticed, at: "2026-01-02T03:04:15Z", grace: grace(30),
			want: api.Condition{Type: "Terminating", Status: "True", Reason: "Evicted", Message: "it is being evicted, with 30 s of grace: drained", LastTransitionTime: "2026-01-02T03:04:15Z"},
		},
		"its owner has deleted it while it is under notice": {
			state: grant.RecordEvicting, evicted: true, millis: noticed, wish: wish, at: "2026-01-02T03:04:05Z", grace: grace(7),
			want: api.Condition{
				Type: "Terminating", Status: "True", Reason: "UserRequested", LastTransitionTime: "2026-01-02T03:04:15Z",
				Message: "it is being evicted, with 30 s of grace (drained), and is gone once that is over",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := &record.Unit{Namespace: "default", Name: "a", Phase: string(api.Terminating), Members: 1, Ending: c.wish}
			m := shown.Member{Unit: shown.Unit{Record: u, Document: &api.Allocation{}, Places: make([]shown.Place, 1)}}
			m.Ending = shown.EndingOf(u, &record.Tx{State: c.state, Evicted: c.evicted, EndingMillis: c.millis, GraceSeconds: 30, Reason: "drained"})
			a := m.Show()
			if diff := cmp.Diff(c.want, a.Status.Conditions[0]); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.grace, a.Metadata.DeletionGracePeriodSeconds); diff != "" || a.Metadata.DeletionTimestamp != c.at {
				t.Errorf("deleted at %q, want %q; grace (-want +got):\n%s", a.Metadata.DeletionTimestamp, c.at, diff)
			}
		})
	}
}

func TestWhatRunsIsNotEnding(t *testing.T) {
	if e := shown.EndingOf(&record.Unit{}, &record.Tx{State: grant.RecordCommitted}); e != (shown.Ending{}) {
		t.Errorf("%+v", e)
	}
}
