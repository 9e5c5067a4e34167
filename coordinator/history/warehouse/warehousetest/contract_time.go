package warehousetest

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

func testRevert(t *testing.T, dsn string) {
	w := Open(t, dsn)
	ctx := context.Background()
	grant := func(revision resource.Revision, state string) history.Grant {
		return history.Grant{Tx: "t", Unit: "u", State: state, Revision: revision, Members: []history.Member{{Node: "n", Requested: resource.Vector{"cpu": 1000}}}}
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	Write(t, w, history.Batch{Upto: 10, Grants: []history.Grant{grant(10, "COMMITTED")}})
	Write(t, w, history.Batch{After: 10, Upto: 20, Grants: []history.Grant{grant(20, "RELEASED")},
		Slices: []history.Slice{{Tx: "t", Slot: "cpu", Tenant: "a", From: noon, To: noon.Add(time.Minute), Allocated: 1000}},
		Gaps:   []history.Gap{{From: 15, Upto: 16}}})
	if _, err := w.SQL().ExecContext(ctx, "DELETE FROM usage_dirty"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a repeated revert changes nothing
		if err := w.Revert(ctx, 12); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := w.Position(ctx); err != nil || p != (history.Position{Revision: 12}) {
		t.Errorf("position %+v, %v", p, err)
	}
	for question, want := range map[string]int64{
		"SELECT count(*) FROM grants WHERE reverted = 0":                                 0,
		"SELECT count(*) FROM grant_resources WHERE reverted = 1":                        1,
		"SELECT count(*) FROM usage_slices WHERE reverted = 1":                           1,
		"SELECT count(*) FROM usage_dirty WHERE tenant_id = 'a'":                         1,
		"SELECT count(*) FROM history_gaps WHERE reverted = 1":                           1,
		"SELECT count(*) FROM history_reverts WHERE to_revision = 12 AND rows IN (0, 2)": 2,
	} {
		if got := Count(t, w, question); got != want {
			t.Errorf("%s: %d, want %d", question, got, want)
		}
	}
	Write(t, w, history.Batch{After: 12, Upto: 13, Grants: []history.Grant{grant(10, "COMMITTED")}})
	got, err := w.All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]history.Grant{grant(10, "COMMITTED")}, got.Grants, equal); diff != "" {
		t.Errorf("the grant of the restored store (-want +got):\n%s", diff)
	}
	if n := Count(t, w, "SELECT count(*) FROM grants"); n != 2 {
		t.Errorf("%d rows, want the reverted one and the new one", n)
	}
}

func testSlices(t *testing.T, dsn string) {
	w := Open(t, dsn)
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	measured := int64(123_456_789)
	slice := func(hour, minutes int, allocated int64) history.Slice {
		from := noon.Add(time.Duration(hour) * time.Hour)
		return history.Slice{Tx: "t", Unit: "u", Tenant: "a", Namespace: "ns", Node: "n", Slot: "cpu", From: from, To: from.Add(time.Duration(minutes) * time.Minute),
			Requested: 500, Allocated: allocated, Limit: 3000, Measured: &measured}
	}
	Write(t, w, history.Batch{Upto: 1, Slices: []history.Slice{slice(0, 60, 1000), slice(1, 5, 1000)}})
	Write(t, w, history.Batch{After: 1, Upto: 1, Slices: []history.Slice{slice(1, 30, 1000), slice(1, 10, 2000), slice(24*40, 5, 1000)}})
	got, err := w.All(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]history.Slice{slice(0, 60, 1000), slice(1, 10, 2000), slice(24*40, 5, 1000)}, got.Slices, equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := Count(t, w, "SELECT count(*) FROM usage_dirty WHERE tenant_id = 'a' AND namespace = 'ns' AND slot_name = 'cpu' AND gpu_model = ''"); n != 3 {
		t.Errorf("%d hours are marked, want 3", n)
	}
	Write(t, w, history.Batch{After: 1, Upto: 1, Slices: []history.Slice{slice(1, 0, 2000), slice(5, 0, 1000)}})
	if got, err = w.All(context.Background()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]history.Slice{slice(0, 60, 1000), slice(24*40, 5, 1000)}, got.Slices, equal); diff != "" {
		t.Errorf("slices without duration (-want +got):\n%s", diff)
	}
}

func testOpenTwice(t *testing.T, dsn string) {
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			w, err := warehouse.Open(context.Background(), dsn)
			if err != nil {
				t.Error(err)
				return
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func testSamples(t *testing.T, dsn string) {
	w := Open(t, dsn)
	ctx := context.Background()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	memory := int64(5)
	for range 2 {
		if err := w.RecordHeartbeats(ctx, []history.Heartbeat{{Node: "n", At: at, MemoryBytes: &memory}, {Node: "n", At: at, GPUUtilizationPercent: []float64{12.5, math.NaN(), 0}}}); err != nil {
			t.Fatal(err)
		}
		if err := w.RecordQuotaUsage(ctx, []history.QuotaUsage{{Tenant: "a", Name: "q", Slot: "cpu", At: at, Used: 500, Peak: 2000, PeakAt: at, Hard: 1000}}); err != nil {
			t.Fatal(err)
		}
	}
	for question, want := range map[string]int64{
		"SELECT count(*) FROM node_heartbeats WHERE cpu_usage_millicores IS NULL":                        1,
		"SELECT count(*) FROM node_heartbeats WHERE CAST(gpu_utilization_pct AS TEXT) = '[12.5,null,0]'": 1,
		"SELECT count(*) FROM quota_usage_history WHERE utilization_pct = 50":                            1,
		"SELECT count(*) FROM quota_usage_history WHERE peak_usage > hard_limit":                         1,
	} {
		if got := Count(t, w, question); got != want {
			t.Errorf("%s: %d, want %d", question, got, want)
		}
	}
}
