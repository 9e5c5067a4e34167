package warehousetest

import (
	"context"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

func testRetention(t *testing.T, dsn string) {
	w := Open(t, dsn)
	ctx := context.Background()
	now := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	ago := func(days int) time.Time { return now.AddDate(0, 0, -days) }
	batch := history.Batch{Upto: 9}
	for name, days := range map[string]int{"old": 2600, "middle": 400, "new": 3} {
		at := ago(days)
		batch.Units = append(batch.Units, history.Unit{UID: resource.UnitUID(name), Requests: resource.Vector{"cpu": 1}, Ended: at, Revision: 1})
		batch.Grants = append(batch.Grants, history.Grant{Tx: resource.TxID(name), Ended: at, Members: []history.Member{{Requested: resource.Vector{"cpu": 1}}}, Revision: 1})
		batch.Preemptions = append(batch.Preemptions, history.Preemption{Tx: resource.TxID(name), Initiated: at, Nodes: []resource.NodeID{"n"}, Revision: 1})
		batch.Audit = append(batch.Audit, history.Audit{ID: name, At: at, Revision: 1})
		batch.Slices = append(batch.Slices, history.Slice{Tx: resource.TxID(name), Slot: "cpu", From: at, To: at.Add(time.Second)})
	}
	for i, days := range []int{800, 500, 3} { // the first two of n1 go: n1 has changed since; of n2 nothing is newer
		batch.Conditions = append(batch.Conditions, history.Condition{Node: "n1", Type: "Ready", New: "True", At: ago(days), Revision: resource.Revision(i + 1)})
	}
	batch.Conditions = append(batch.Conditions, history.Condition{Node: "n2", Type: "Ready", New: "True", At: ago(800), Revision: 1})
	batch.Conditions = append(batch.Conditions, history.Condition{Node: "n3", Type: "Ready", New: "True", At: ago(800), Revision: 1}) // its row has gone
	batch.Nodes = append(batch.Nodes, history.Node{ID: "n1", Revision: 1}, history.Node{ID: "n2", Revision: 1})
	batch.Units = append(batch.Units, history.Unit{UID: "running", Created: ago(2600), Revision: 1})
	running := map[string]int64{}
	for _, unit := range []resource.UnitUID{"running", "ended"} { // the second's job goes on
		batch.Grants = append(batch.Grants, history.Grant{Tx: resource.TxID(unit), Unit: unit, Ended: ago(800), Revision: 1})
		batch.Waits = append(batch.Waits, history.Wait{Unit: unit, Since: ago(801), Until: ago(800), Revision: 1})
		running["SELECT count(*) FROM grants WHERE allocation_id = '"+string(unit)+"'"] = 1
		running["SELECT count(*) FROM queue_history WHERE allocation_id = '"+string(unit)+"'"] = 1
		running["SELECT count(*) FROM allocations WHERE allocation_id = '"+string(unit)+"'"] = 1
	}
	batch.Jobs = append(batch.Jobs, history.Job{UID: "job", Revision: 1})
	batch.Units = append(batch.Units, history.Unit{UID: "ended", JobUID: "job", Ended: ago(800), Revision: 1})
	batch.Preemptions = append(batch.Preemptions, history.Preemption{Tx: "evicting", Outcome: history.OutcomeEvicting, Initiated: ago(800), Revision: 1})
	running["SELECT count(*) FROM preemption_events WHERE preemption_id = 'evicting'"] = 1
	Write(t, w, batch)
	want := map[string]int64{"allocations": 4, "allocation_requests": 2, "grants": 4, "grant_resources": 2, "preemption_events": 2, "preemption_nodes": 1, "audit_log": 2, "usage_slices": 1, "node_condition_changes": 2}
	before := map[string]int64{"allocations": 5, "allocation_requests": 3, "grants": 5, "grant_resources": 3, "preemption_events": 4, "preemption_nodes": 3, "audit_log": 3, "usage_slices": 3, "node_condition_changes": 5}
	holds := func(when string, want map[string]int64) {
		t.Helper()
		for table, n := range want {
			if got := Count(t, w, "SELECT count(*) FROM "+table); got != n {
				t.Errorf("%s: table %s has %d rows, want %d", when, table, got, n)
			}
		}
	}
	announced := retain(t, w, now, true)
	holds("a dry run", before)
	done := retain(t, w, now, false)
	holds("retention", want)
	for query, n := range running {
		if got := Count(t, w, query); got != n {
			t.Errorf("rows of work that runs: %s: %d, want %d", query, got, n)
		}
	}
	if len(announced) != len(done) {
		t.Fatalf("a dry run names %d tables, retention %d", len(announced), len(done))
	}
	for i := range done {
		if announced[i].Rows != done[i].Rows || len(announced[i].Detached) != len(done[i].Detached) {
			t.Errorf("announced %+v, done %+v", announced[i], done[i])
		}
	}
	if again := goes(retain(t, w, now, false)); again != 0 {
		t.Errorf("a second run finds %d rows or months", again)
	}
	late := history.Batch{After: 9, Upto: 10, Slices: []history.Slice{{Tx: "late", Slot: "cpu", From: ago(400), To: ago(400).Add(time.Second)}}}
	Write(t, w, late) // a month that was detached
	holds("a late row", map[string]int64{"usage_slices": 2})
	if err := w.Revert(ctx, 3); err != nil {
		t.Error(err)
	}
	if done, err := w.Retain(ctx, warehouse.Retention{Completed: 2 * 24 * time.Hour}, now, true); err != nil || goes(done) != 5 { // the new and the middle unit, with a grant each, and the late slice
		t.Errorf("a period of 2 days takes %d rows, want 5 (%v)", goes(done), err)
	}
	for _, r := range retain(t, w, now.Add(13*time.Hour), true) {
		if !r.Before.Equal(r.Before.Truncate(24 * time.Hour)) {
			t.Errorf("table %s loses a part of the day of %s", r.Table, r.Before)
		}
	}
	later := retain(t, w, now.AddDate(0, 0, 31), false)
	holds("a month later", map[string]int64{"usage_slices": 1})
	if w.Dialect() == warehouse.Postgres {
		dropped := 0
		for _, r := range later {
			dropped += len(r.Dropped)
		}
		if tables := Count(t, w, "SELECT count(*) FROM history_detached WHERE parent = 'usage_slices'"); dropped == 0 || tables != 1 {
			t.Errorf("%d months dropped, %d still detached; want the late one alone", dropped, tables)
		}
	}
}

func retain(t *testing.T, w *warehouse.Warehouse, now time.Time, dryRun bool) []warehouse.Retained {
	t.Helper()
	done, err := w.Retain(context.Background(), warehouse.Retention{}, now, dryRun)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// goes counts what leaves its table.
func goes(done []warehouse.Retained) (n int64) {
	for _, r := range done {
		n += r.Rows + int64(len(r.Detached))
	}
	return n
}

// testNow: the database of a test runs on this machine, and has its clock.
func testNow(t *testing.T, dsn string) {
	w := Open(t, dsn)
	before := time.Now().Add(-time.Second)
	now, err := w.Now(t.Context())
	if err != nil || now.Before(before) || now.After(time.Now().Add(time.Second)) {
		t.Errorf("the database says %s, %v; here it is %s", now, err, time.Now())
	}
}
