package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// TestAReconciliationDoesNotEndAnEvictedUnit: the backup has the unit on its way
// out, and the agent holds nothing of the unit any more. What becomes of the unit
// is what the eviction had settled, unless its owner has asked for its end.
func TestAReconciliationDoesNotEndAnEvictedUnit(t *testing.T) {
	const removed = "removed"
	evicted := func(state grant.RecordState, requeues bool) func(*record.Unit, *record.Tx) {
		return func(u *record.Unit, rec *record.Tx) {
			u.Phase, u.Requeues = string(api.Terminating), requeues
			rec.State, rec.Evicted, rec.Reason, rec.GraceSeconds = state, true, suspendedReason, 5
		}
	}
	for name, c := range map[string]struct {
		change         func(*record.Unit, *record.Tx)
		reports, phase string
	}{
		"a suspended allocation has notice":  {evicted(grant.RecordEvicting, true), "its eviction goes on", string(api.Pending)},
		"a suspended allocation has stopped": {evicted(grant.RecordReleasing, true), "its release goes on", string(api.Pending)},
		"an evicted allocation has notice":   {evicted(grant.RecordEvicting, false), "its eviction goes on", string(api.Preempted)},
		"an evicted allocation has stopped":  {evicted(grant.RecordReleasing, false), "its release goes on", string(api.Preempted)},
		"an allocation runs":                 {func(*record.Unit, *record.Tx) {}, "ended: StoreRestored", removed},
		"the owner has asked for the end": {func(u *record.Unit, rec *record.Tx) {
			u.Phase, rec.State = string(api.Terminating), grant.RecordReleasing
		}, "its release goes on", removed},
		"the owner has asked for the end of a victim": {func(u *record.Unit, rec *record.Tx) {
			evicted(grant.RecordEvicting, false)(u, rec)
			u.Ending = &record.Cancellation{Reason: "deleted"}
		}, "its release goes on", removed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayWhere(t, c.change)
			for len(p.questions) > 0 { // what the new leader goes on with
				p.answer()
			}
			u := p.l.work.Units["default/alloc/back/0"]
			reports := outcomeWhereBack(u.Attempt)
			p.run("> n1 connects in quarantine: lost 0\n> release n1\n")
			for len(p.questions) > 0 {
				p.answer()
			}
			p.run("> n1 tells all\n")
			for len(p.questions) > 0 {
				p.answer()
			}
			kv, _, _, err := p.store.Get(t.Context(), record.TxKey(backTx))
			if err != nil {
				t.Fatal(err)
			}
			rec, err := record.Decode[record.Tx](kv.Key, kv.Value)
			if err != nil || rec.State != grant.RecordReleasing || rec.Evicted != (c.phase != removed) {
				t.Errorf("the record is %s, evicted %t, error %v", rec.State, rec.Evicted, err)
			}
			end := p.l.endOfUnit(u.Attempt)
			got := end.Record.Phase
			if end.Removed {
				got = removed
			}
			if got != c.phase || u.Attempt.Machine.State() != txn.Releasing {
				t.Errorf("the unit ends as %s, its transaction is %s, want %s", got, u.Attempt.Machine.State(), c.phase)
			}
			if reports != c.reports {
				t.Errorf("reports %q, want %q", reports, c.reports)
			}
		})
	}
}
