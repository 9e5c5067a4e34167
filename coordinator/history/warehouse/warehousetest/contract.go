// Package warehousetest is the contract of a history's database: each database that
// history/warehouse writes passes it. A history in memory is the oracle.
package warehousetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

// Run holds a database to the contract. dsn returns the DSN of a new, empty database.
func Run(t *testing.T, dsn func(t *testing.T) string) {
	for name, test := range map[string]func(*testing.T, string){
		"a batch follows the position":                           testPosition,
		"a repair leaves the position":                           testRepair,
		"a greater revision wins, an equal one stays":            testRevisions,
		"rows of random batches and reverts are the oracle's":    testRandom,
		"unknown and none are NULL, zero is 0":                   testNulls,
		"texts and documents of any content are taken":           testTexts,
		"reverted rows stay and do not count":                    testRevert,
		"slices are written anew and mark their hours":           testSlices,
		"cuts take slices back, and the last counters are known": testCuts,
		"two histories of one database open at once":             testOpenTwice,
		"samples are taken once":                                 testSamples,
		"rows go at the end of their time":                       testRetention,
		"the clock is that of the database":                      testNow,
	} {
		t.Run(name, func(t *testing.T) { test(t, dsn(t)) })
	}
}

// Open opens a history that is closed with the test.
func Open(t testing.TB, dsn string) *warehouse.Warehouse {
	t.Helper()
	w, err := warehouse.Open(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// Write writes a batch, or fails the test.
func Write(t testing.TB, w *warehouse.Warehouse, b history.Batch) {
	t.Helper()
	if err := w.Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// Count is the number in the first row of a question.
func Count(t testing.TB, w *warehouse.Warehouse, question string) (n int64) {
	t.Helper()
	if err := w.SQL().QueryRowContext(context.Background(), question).Scan(&n); err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return n
}

func testPosition(t *testing.T, dsn string) {
	w := Open(t, dsn)
	ctx := context.Background()
	Write(t, w, history.Batch{After: 0, Upto: 5, Mark: "five", Gaps: []history.Gap{{From: 1, Upto: 5, Reason: "the store begins at 6"}}})
	for _, after := range []resource.Revision{0, 4, 6} {
		err := w.Write(ctx, history.Batch{After: after, Upto: 7, Jobs: []history.Job{{UID: "refused", Revision: 7}}})
		var refused *history.PositionError
		if !errors.As(err, &refused) || refused.Has != 5 || refused.After != after {
			t.Errorf("a batch after %d: %v; want a refusal", after, err)
		}
	}
	if n := Count(t, w, "SELECT count(*) FROM jobs"); n != 0 {
		t.Errorf("%d rows of refused batches", n)
	}
	Write(t, w, history.Batch{After: 5, Upto: 5, Mark: "again"}) // rows of time alone
	again := Open(t, dsn)
	if p, err := again.Position(ctx); err != nil || p != (history.Position{Revision: 5, Mark: "again"}) {
		t.Errorf("position %+v, %v", p, err)
	}
	if err := w.Write(ctx, history.Batch{After: 5, Upto: 4}); err == nil {
		t.Error("a batch that goes back was taken")
	}
	if err := w.Write(ctx, history.Batch{After: 5, Upto: 6, Mark: strings.Repeat("m", warehouse.MaxMark+1)}); err == nil {
		t.Error("a mark beyond its bound was taken")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Write(ended, history.Batch{After: 5, Upto: 6}); err == nil {
		t.Error("a write without time was taken")
	}
	if n := Count(t, w, "SELECT count(*) FROM history_gaps WHERE reverted = 0"); n != 1 {
		t.Errorf("%d gaps, want 1", n)
	}
}

// testRepair: its rows replace those of the same revision, and not newer ones. Where it is
// interrupted, the parts that were written are whole.
func testRepair(t *testing.T, dsn string) {
	w, oracle := Open(t, dsn), mem.New()
	ctx := context.Background()
	job := func(uid, phase string, revision resource.Revision) history.Batch {
		return history.Batch{Jobs: []history.Job{{UID: uid, Phase: phase, Revision: revision}}}
	}
	before := history.Batch{Upto: 7, Mark: "seven", Jobs: []history.Job{{UID: "same", Phase: "Running", Revision: 5}, {UID: "newer", Phase: "Running", Revision: 7}}}
	Write(t, w, before)
	parts := []history.Batch{job("same", "Failed", 5), job("newer", "Failed", 6), job("absent", "Failed", 6)}
	if err := errors.Join(w.Repair(ctx, slices.Values(parts)), oracle.Write(ctx, before), oracle.Repair(ctx, slices.Values(parts))); err != nil {
		t.Fatal(err)
	}
	if diff := Diff(t, oracle, w); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p, err := w.Position(ctx); err != nil || p != (history.Position{Revision: 7, Mark: "seven"}) {
		t.Errorf("position %+v, %v", p, err)
	}
	stopped, cancel := context.WithCancel(ctx)
	err := w.Repair(stopped, func(yield func(history.Batch) bool) {
		if yield(job("first", "Failed", 6)) && yield(job("second", "Failed", 6)) { // the first is written once a third is asked for
			cancel()
			yield(job("third", "Failed", 6))
		}
	})
	if n := Count(t, w, "SELECT count(*) FROM jobs WHERE job_id = 'first'"); n != 1 || err == nil {
		t.Errorf("of an interrupted repair: %d rows of the first part, want 1; error %v", n, err)
	}
}

func testRevisions(t *testing.T, dsn string) {
	w := Open(t, dsn)
	at := func(s int) time.Time { return time.Date(2026, 3, 1, 0, 0, s, 0, time.UTC) }
	unit := func(revision resource.Revision, state string, scheduled int, requests resource.Vector) history.Unit {
		u := history.Unit{UID: "u", State: state, Requests: requests, Revision: revision}
		if scheduled > 0 {
			u.Scheduled = at(scheduled)
		}
		return u
	}
	Write(t, w, history.Batch{Upto: 3, Units: []history.Unit{unit(3, "Running", 5, resource.Vector{"cpu": 1000, "memory": 1 << 30})}})
	Write(t, w, history.Batch{After: 3, Upto: 4, Units: []history.Unit{unit(2, "Pending", 1, nil), unit(3, "Failed", 1, nil)}})
	Write(t, w, history.Batch{After: 4, Upto: 9, Units: []history.Unit{unit(8, "Pending", 0, nil), unit(9, "Running", 7, resource.Vector{"cpu": 2000})}})
	got, err := w.All(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]history.Unit{unit(9, "Running", 5, resource.Vector{"cpu": 2000})}, got.Units); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// equal compares rows as databases keep them.
var equal = cmp.Options{cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b history.Gap) bool { return a.From < b.From })}

func testRandom(t *testing.T, dsn string) {
	w, oracle := Open(t, dsn), mem.New()
	ctx := context.Background()
	random := NewRandom(rand.New(rand.NewPCG(7, 20)))
	for range 60 {
		if random.Position > 20 && random.IntN(12) == 0 {
			to := random.Position - resource.Revision(random.IntN(20))
			if err := errors.Join(w.Revert(ctx, to), oracle.Revert(ctx, to)); err != nil {
				t.Fatal(err)
			}
			random.Position = to
		}
		b := random.Batch()
		Write(t, w, b)
		if err := oracle.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
		if diff := Diff(t, oracle, w); diff != "" {
			t.Fatalf("after revision %d (-want +got):\n%s", b.Upto, diff)
		}
		asked := random.Batch()
		random.Position = b.Upto
		want, _ := oracle.Read(ctx, asked)
		got, err := w.Read(ctx, asked)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sorted(want), sorted(got), equal); diff != "" {
			t.Fatalf("Read (-want +got):\n%s", diff)
		}
	}
}

func testNulls(t *testing.T, dsn string) {
	w := Open(t, dsn)
	Write(t, w, history.Batch{Upto: 1, Units: []history.Unit{{UID: "u", Requests: resource.Vector{"cpu": 1500, "example.com/fpga": 0}, Limits: resource.Vector{"memory": 0}, Revision: 1}},
		Quotas: []history.Quota{{Namespace: "", Name: "all", Slot: "cpu", Hard: resource.Unlimited, Soft: 0, Revision: 1}},
		Nodes:  []history.Node{{ID: "n", Capacity: resource.Vector{"cpu": 8000, "example.com/fpga": 2}, Revision: 1}}})
	amount := func(units, base string) string {
		if w.Dialect() == warehouse.Postgres {
			return units
		}
		return base
	}
	for question, want := range map[string]int64{
		"SELECT count(*) FROM allocation_requests WHERE slot_name = 'cpu' AND requested = " + amount("1.5", "1500") + " AND limit_amount IS NULL": 1,
		"SELECT count(*) FROM allocation_requests WHERE slot_name = 'memory' AND requested = 0 AND limit_amount = 0":                              1,
		"SELECT count(*) FROM resource_quotas WHERE hard_limit IS NULL AND soft_limit = 0 AND namespace = ''":                                     1,
		"SELECT count(*) FROM resource_allocations WHERE used IS NULL AND used_at IS NULL":                                                        3,
		"SELECT count(*) FROM node_extended_resources WHERE resource_name = 'example.com/fpga' AND capacity = 2":                                  1,
		"SELECT rank FROM resource_slot_types WHERE slot_name = 'example.com/fpga' AND slot_type = 'count'":                                       100,
	} {
		if got := Count(t, w, question); got != want {
			t.Errorf("%s: %d, want %d", question, got, want)
		}
	}
	grant := history.Grant{Tx: "t", Unit: "u", State: "COMMITTED", Committed: time.Unix(1e9, 0), Ready: time.Unix(1e9, 0), Revision: 2,
		Members: []history.Member{{Node: "n", Requested: resource.Vector{"cpu": 1500}, Allocated: resource.Vector{"cpu": 2000}}}}
	Write(t, w, history.Batch{After: 1, Upto: 2, Grants: []history.Grant{grant}})
	for question, want := range map[string]int64{
		"SELECT count(*) FROM resource_allocations WHERE slot_name = 'cpu' AND used = " + amount("2", "2000") + " AND used_at IS NOT NULL AND free_at IS NULL": 1,
		"SELECT count(*) FROM node_resource_occupancy WHERE node_id = 'n' AND slot_name = 'cpu' AND reserved = 0 AND used = " + amount("2", "2000"):            1,
	} {
		if got := Count(t, w, question); got != want {
			t.Errorf("%s: %d, want %d", question, got, want)
		}
	}
}

func testTexts(t *testing.T, dsn string) {
	w := Open(t, dsn)
	hostile := "a\x00b\xff\u2028'\"\\; DROP TABLE jobs; --"
	Write(t, w, history.Batch{Upto: 1,
		Jobs: []history.Job{{UID: "j", Name: hostile, Document: []byte(`{"a":"\u0000\ud800"}`), Message: hostile, Revision: 1},
			{UID: "k", Document: []byte(`not JSON` + "\x00"), Revision: 1}},
		Nodes: []history.Node{{ID: "n", Hostname: hostile, Labels: map[string]string{hostile: hostile}, Taints: []byte(`[1e999999]`), Revision: 1}},
		Audit: []history.Audit{{ID: "a", User: hostile, Actor: []byte(hostile), Revision: 1}}})
	got, err := w.All(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	clean := "a\uFFFDb\uFFFD\u2028'\"\\; DROP TABLE jobs; --"
	if len(got.Jobs) != 2 || got.Jobs[0].Name != clean || string(got.Jobs[0].Document) != `{"a":"��"}` {
		t.Errorf("jobs %+v", got.Jobs)
	}
	Count(t, w, "SELECT count(*) FROM jobs WHERE document->>'a' = ''") // fails for texts without a form in the database
	if len(got.Nodes) != 1 || got.Nodes[0].Labels[clean] != clean {
		t.Errorf("nodes %+v", got.Nodes)
	}
}
