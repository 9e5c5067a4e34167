package tally_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

// quotaUse is a row of the use of quotas; amounts in CPUs.
type quotaUse struct {
	used, peak, percent float64
	at                  time.Time
}

// TestTheUseOfQuotasHasPeaks: against a sum minute by minute, for quotas of namespaces
// and of the whole tenant, when the hour is over and while it is not.
func TestTheUseOfQuotasHasPeaks(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		random := rand.New(rand.NewPCG(1, 2))
		limit := func(namespace string, hard int64, from, to time.Time) history.Quota {
			return history.Quota{Namespace: namespace, Name: "q", Tenant: "t", Slot: resource.CPU, Hard: hard, Soft: resource.Unlimited, From: from, To: to, Revision: 1}
		}
		p, err := w.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(t.Context(), history.Batch{After: p.Revision, Upto: p.Revision + 1, At: start, Quotas: []history.Quota{
			limit("a", 100_000, start.Add(-time.Hour), time.Time{}), limit("", resource.Unlimited, start.Add(-time.Hour), time.Time{}),
			limit("b", 50_000, start.Add(-time.Hour), start), limit("c", 1, start.Add(-time.Hour), time.Time{}),
			{Namespace: "a", Name: "part", Tenant: "t", Slot: resource.CPU, Hard: 1, Soft: resource.Unlimited, Scoped: true, From: start.Add(-time.Hour), Revision: 1},
		}})
		if err != nil {
			t.Fatal(err)
		}
		for round := range 4 {
			over := round%2 == 1
			upto := 37 // minutes; the slices of what runs end here in an hour that is not over
			now := start.Add(38 * time.Minute)
			if over {
				upto, now = 60, start.Add(2*time.Hour)
			}
			var all []history.Slice
			levels := map[string]*[60]int64{"a": {}, "": {}}
			for n := range 1 + random.IntN(30) {
				from := random.IntN(upto)
				to := from + 1 + random.IntN(upto-from)
				if n == 0 {
					to = upto // something runs still
				}
				namespace, amount := []string{"a", "b"}[random.IntN(2)], int64(1+random.IntN(9))*1000
				all = append(all, history.Slice{
					Tx: resource.TxID(fmt.Sprint("t", n)), Namespace: namespace, Tenant: "t", Slot: resource.CPU, Requested: amount, Allocated: 2 * amount,
					From: start.Add(time.Duration(from) * time.Minute), To: start.Add(time.Duration(to) * time.Minute),
				})
				for minute := from; minute < to; minute++ {
					levels[""][minute] += amount
					if namespace == "a" {
						levels["a"][minute] += amount
					}
				}
			}
			for n := len(all); n < 30; n++ { // those of the round before
				all = append(all, history.Slice{Tx: resource.TxID(fmt.Sprint("t", n)), Tenant: "t", Slot: resource.CPU, From: start, To: start})
			}
			write(t, w, history.Slice{Tx: "mark", Namespace: "a", Tenant: "t", Slot: resource.CPU, From: start, To: start})
			clear(t, w)
			write(t, w, all...)
			if _, err := tally.Settle(t.Context(), w, now); err != nil {
				t.Fatal(err)
			}
			want := map[string]quotaUse{}
			for namespace, level := range levels {
				var row quotaUse
				for minute, held := range level {
					if cpus := float64(held) / 1000; cpus > row.peak {
						row.peak, row.at = cpus, start.Add(time.Duration(minute)*time.Minute)
					}
				}
				if row.peak == 0 {
					continue
				}
				row.used = float64(level[upto-1]) / 1000
				if namespace == "a" {
					row.percent = row.used // of 100 CPUs
				}
				want[namespace] = row
			}
			if diff := cmp.Diff(want, quotaUses(t, w), cmp.AllowUnexported(quotaUse{})); diff != "" {
				t.Fatalf("round %d (-want +got)\n%s", round, diff)
			}
		}
	})
}

// clear forgets the slices and the rows of the round before.
func clear(t *testing.T, w *warehouse.Warehouse) {
	t.Helper()
	for _, table := range []string{"usage_slices", "quota_usage_history"} {
		if _, err := w.SQL().ExecContext(t.Context(), "DELETE FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
}

func quotaUses(t *testing.T, w *warehouse.Warehouse) map[string]quotaUse {
	t.Helper()
	rows, err := w.SQL().QueryContext(t.Context(), "SELECT namespace, usage_value, peak_usage, coalesce(utilization_pct, 0), peak_usage_at FROM quota_usage_history")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]quotaUse{}
	for rows.Next() {
		var namespace string
		var u quotaUse
		var at any
		if err := rows.Scan(&namespace, &u.used, &u.peak, &u.percent, &at); err != nil {
			t.Fatal(err)
		}
		switch at := at.(type) {
		case time.Time:
			u.at = at.UTC()
		case int64:
			u.at = time.UnixMilli(at).UTC()
			u.used, u.peak = u.used/1000, u.peak/1000
		}
		if _, twice := all[namespace]; twice {
			t.Fatalf("two rows of namespace %q: a quota with scopes has one", namespace)
		}
		all[namespace] = u
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
