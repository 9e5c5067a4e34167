package projector

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
)

// TestNothingEndsBeforeItBegan: rows that vanished in a gap may be newer than all that the
// store has.
func TestNothingEndsBeforeItBegan(t *testing.T) {
	old := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	begun := old.Add(time.Hour)
	has := history.Batch{
		Units:  []history.Unit{{UID: "u", Created: old, Scheduled: begun}},
		Grants: []history.Grant{{Tx: "tx", Committed: begun}},
		Jobs:   []history.Job{{UID: "j", Created: begun}},
		Nodes:  []history.Node{{ID: "n", Registered: begun}},
		Waits:  []history.Wait{{Unit: "u", Since: begun}},
		Quotas: []history.Quota{{Name: "q", From: begun}},
	}
	for name, at := range map[string]time.Time{"no record has an instant": {}, "the newest is older": old, "the newest is newer": begun.Add(time.Hour)} {
		b := history.Batch{At: at, Upto: 9}
		closeVanished(&b, has)
		want := begun
		if at.After(want) {
			want = at
		}
		for row, end := range map[string]time.Time{
			"unit": b.Units[0].Ended, "grant": b.Grants[0].Ended, "job": b.Jobs[0].Ended, "node": b.Nodes[0].Deleted, "wait": b.Waits[0].Until, "quota": b.Quotas[0].To,
		} {
			if !end.Equal(want) {
				t.Errorf("%s: the %s ended %s, want %s", name, row, end, want)
			}
		}
	}
}

// TestAConditionThatVanishedIsFalse: one that the store does not show any more gets a row
// that ends it; those that the store shows, and those that were False, get none.
func TestAConditionThatVanishedIsFalse(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	b := history.Batch{Upto: 9, At: at, Conditions: []history.Condition{{Node: "n", Type: "Ready", New: "True", Revision: 8}}}
	has := history.Batch{Conditions: []history.Condition{
		{Node: "n", Type: "Ready", New: "False", Revision: 2}, {Node: "n", Type: "Banned", New: "True", Revision: 3}, {Node: "n", Type: "Fenced", New: "False", Revision: 4},
	}}
	closeVanished(&b, has)
	if len(b.Conditions) != 2 {
		t.Fatalf("rows %+v, want one more", b.Conditions)
	}
	if c := b.Conditions[1]; c.Type != "Banned" || c.Old != "True" || c.New != "False" || !c.At.Equal(at) || c.Revision != 9 {
		t.Errorf("row %+v", c)
	}
}
