package warehouse_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
	"github.com/musterd/muster/test/postgres"
)

// TestCoordinatorsRetainAtOnce: two coordinators may detach the same months at once, and
// a third one that knew them writes late samples all the same.
func TestCoordinatorsRetainAtOnce(t *testing.T) {
	dsn := postgres.Database(t)
	w := []*warehouse.Warehouse{warehousetest.Open(t, dsn), warehousetest.Open(t, dsn), warehousetest.Open(t, dsn)}
	now := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	var old []history.Heartbeat
	for months := range 12 {
		old = append(old, history.Heartbeat{Node: "n", At: now.AddDate(0, -3-months, 0)})
	}
	if err := w[2].RecordHeartbeats(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	hold := func(statement string) *sql.Tx {
		t.Helper()
		tx, err := w[2].SQL().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	blocked := func(what string, n int64) {
		t.Helper()
		for deadline := time.Now().Add(8 * time.Second); warehousetest.Count(t, w[2], "SELECT count(*) FROM pg_locks WHERE NOT granted AND "+what) < n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %d locks with %s wait", n, what)
			}
		}
	}
	before := hold("LOCK TABLE queue_history IN EXCLUSIVE MODE")
	var both sync.WaitGroup
	for _, one := range w[:2] {
		both.Go(func() {
			if _, err := one.Retain(context.Background(), warehouse.Retention{}, now, false); err != nil {
				t.Error(err)
			}
		})
	}
	blocked("relation = 'queue_history'::regclass", 2)
	reader := hold("LOCK TABLE node_heartbeats IN ACCESS SHARE MODE")
	if err := before.Rollback(); err != nil {
		t.Fatal(err)
	}
	blocked("relation = 'node_heartbeats'::regclass", 1) // the first detaches, and the second has listed the same months
	blocked("locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())", 1)
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	err := w[2].RecordHeartbeats(t.Context(), old[:1])
	if err != nil { // the months that it knew are gone
		err = w[2].RecordHeartbeats(t.Context(), old[:1])
	}
	if err != nil {
		t.Error(err)
	}
}

// TestOneTableKeepsNoOther: a table whose rows cannot be deleted leaves the others to
// retention.
func TestOneTableKeepsNoOther(t *testing.T) {
	w := warehousetest.Open(t, sqliteDSN(t))
	old := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	warehousetest.Write(t, w, history.Batch{
		Upto: 1, Waits: []history.Wait{{Unit: "u", Since: old, Until: old, Revision: 1}}, Audit: []history.Audit{{ID: "a", At: old, Revision: 1}},
	})
	if _, err := w.SQL().ExecContext(t.Context(), "CREATE TRIGGER held BEFORE DELETE ON queue_history BEGIN SELECT RAISE(ABORT, 'held'); END"); err != nil {
		t.Fatal(err)
	}
	done, err := w.Retain(t.Context(), warehouse.Retention{}, time.Now(), false)
	if err == nil || len(done) == 0 {
		t.Errorf("error %v, %d tables done; want an error of one table alone", err, len(done))
	}
	if n := warehousetest.Count(t, w, "SELECT count(*) FROM audit_log"); n != 0 {
		t.Errorf("%d old entries of the audit stay", n)
	}
}
