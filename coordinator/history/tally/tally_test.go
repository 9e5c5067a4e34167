package tally_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/usage/usagetest"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

// start is a full hour of a day in the past.
var start = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)

// both runs a test on each database.
func both(t *testing.T, test func(t *testing.T, w *warehouse.Warehouse)) {
	for name, dsn := range map[string]func(t *testing.T) string{
		"PostgreSQL": func(t *testing.T) string { return postgres.Database(t) },
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "history.db") },
	} {
		t.Run(name, func(t *testing.T) {
			w, err := warehouse.Open(t.Context(), dsn(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, w)
		})
	}
}

// fataler is what ends a test, or a try of a property.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// write adds slices behind the position.
func write(t fataler, w *warehouse.Warehouse, all ...history.Slice) {
	t.Helper()
	p, err := w.Position(context.Background())
	if err == nil {
		err = w.Write(context.Background(), history.Batch{After: p.Revision, Upto: p.Revision + 1, At: start, Slices: all})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func settle(t fataler, w *warehouse.Warehouse) int {
	t.Helper()
	n, err := tally.Settle(context.Background(), w, start)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// row is a row of sums as text, so that both databases and the package usage write the
// same.
type row struct {
	key                                     usagetest.Key
	at                                      time.Time
	least, most, p95, p99                   string
	requested, allocated, limited, measured string
	used, waste                             string // percent; "" unknown
	mostUsed, usedP95, usedP99              string // "" where nothing was measured
	cost                                    string
}

// integral prints base units times milliseconds as units times seconds.
func integral(slot resource.Name, n *big.Int) string {
	return new(big.Rat).SetFrac(n, big.NewInt(1000*slot.Scale())).FloatString(9)
}

func units(slot resource.Name, n int64) string {
	return new(big.Rat).SetFrac64(n, slot.Scale()).FloatString(6)
}

// rowOf is a sum of the package usagetest; cost is in hundredths of a cent.
func rowOf(s usagetest.Sum, cost int64) row {
	r := row{
		key: s.Key, at: s.From, least: units(s.Slot, s.Min), most: units(s.Slot, s.Max), p95: units(s.Slot, s.P95), p99: units(s.Slot, s.P99),
		requested: integral(s.Slot, s.Requested), allocated: integral(s.Slot, s.Allocated), limited: integral(s.Slot, s.Limit), measured: integral(s.Slot, s.Measured),
		cost: big.NewRat(cost, 10_000).FloatString(4),
	}
	if s.UsedLevels != nil {
		r.mostUsed, r.usedP95, r.usedP99 = units(s.Slot, s.UsedMax), units(s.Slot, s.UsedP95), units(s.Slot, s.UsedP99)
	}
	if used, waste, known := s.Utilization(); known {
		r.used, r.waste = big.NewRat(used, 100).FloatString(2), big.NewRat(waste, 100).FloatString(2)
	}
	return r
}

// stored are the rows of a table of a tenant, ascending by key and instant.
func stored(t fataler, w *warehouse.Warehouse, table, instant string, tenant resource.TenantID) []row {
	t.Helper()
	found, err := w.SQL().Query(fmt.Sprintf(`SELECT tenant_id, namespace, slot_name, gpu_model, %s, CAST(min_usage AS TEXT), CAST(max_usage AS TEXT), CAST(p95_usage AS TEXT), CAST(p99_usage AS TEXT),
		CAST(total_requested AS TEXT), CAST(total_allocated AS TEXT), CAST(total_limit AS TEXT), CAST(total_measured AS TEXT), CAST(utilization_pct AS TEXT), CAST(waste_pct AS TEXT), CAST(cost_units AS TEXT),
		coalesce(CAST(max_used AS TEXT), ''), coalesce(CAST(p95_used AS TEXT), ''), coalesce(CAST(p99_used AS TEXT), '')
		FROM %s WHERE tenant_id = $1 ORDER BY namespace, slot_name, gpu_model, %[1]s`, instant, table), string(tenant))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	var all []row
	for found.Next() {
		var r row
		var at any
		var used, waste sql.NullString
		if err := found.Scan(&r.key.Tenant, &r.key.Namespace, &r.key.Slot, &r.key.Model, &at, &r.least, &r.most, &r.p95, &r.p99,
			&r.requested, &r.allocated, &r.limited, &r.measured, &used, &waste, &r.cost, &r.mostUsed, &r.usedP95, &r.usedP99); err != nil {
			t.Fatal(err)
		}
		switch at := at.(type) {
		case time.Time:
			r.at = at.UTC()
		case int64:
			r.at = time.UnixMilli(at).UTC()
		}
		all = append(all, readable(t, w.Dialect(), r, used, waste))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// readable brings a row into the words of row.
func readable(t fataler, d warehouse.Dialect, r row, used, waste sql.NullString) row {
	scale, ms, parts := int64(1), int64(1), int64(1)
	if d == warehouse.SQLite {
		scale, ms, parts = r.key.Slot.Scale(), 1000, 10_000
	}
	number := func(text string, by int64, digits int) string {
		n, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no number", text)
		}
		return n.Quo(n, new(big.Rat).SetInt64(by)).FloatString(digits)
	}
	for _, field := range []*string{&r.least, &r.most, &r.p95, &r.p99} {
		*field = number(*field, scale, 6)
	}
	for _, field := range []*string{&r.mostUsed, &r.usedP95, &r.usedP99} {
		if *field != "" {
			*field = number(*field, scale, 6)
		}
	}
	for _, field := range []*string{&r.requested, &r.allocated, &r.limited, &r.measured} {
		*field = number(*field, scale*ms, 9)
	}
	r.cost = number(r.cost, parts, 4)
	if used.Valid {
		r.used, r.waste = number(used.String, 1, 2), number(waste.String, 1, 2)
	}
	return r
}

// anySlices draws slices of one tenant within three hours, two of which are of one day.
func anySlices(t *rapid.T, tenant resource.TenantID) []history.Slice {
	var all []history.Slice
	for i := range rapid.IntRange(1, 15).Draw(t, "slices") {
		hour := start.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "hour")) * time.Hour)
		from := rapid.Int64Range(0, 3_599_999).Draw(t, "from")
		to := rapid.OneOf(rapid.Just(int64(3_600_000)), rapid.Int64Range(from, 3_600_000)).Draw(t, "to")
		s := history.Slice{
			Tx: resource.TxID(fmt.Sprintf("%s-%d", tenant, rapid.IntRange(0, 3).Draw(t, "tx"))), Member: i % 3, Unit: "u", Node: "n", Tenant: tenant,
			Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
			Slot:      rapid.SampledFrom([]resource.Name{resource.CPU, resource.Memory, resource.GPU}).Draw(t, "slot"),
			From:      hour.Add(time.Duration(from) * time.Millisecond), To: hour.Add(time.Duration(to) * time.Millisecond),
			Requested: rapid.Int64Range(0, 9000).Draw(t, "requested"), Allocated: rapid.OneOf(rapid.Int64Range(0, 9000), rapid.Int64Range(0, 1<<44)).Draw(t, "allocated"),
			Limit: rapid.Int64Range(0, 9000).Draw(t, "limit"),
		}
		s.Tx += resource.TxID(s.Namespace)
		if s.Slot == resource.GPU {
			s.GPUModel = rapid.SampledFrom([]string{"", "H100"}).Draw(t, "model")
		}
		if rapid.Bool().Draw(t, "measured") {
			used := rapid.Int64Range(0, min(s.Allocated, 1<<40)*(to-from)/1000).Draw(t, "used")
			s.Measured = &used
		}
		all = append(all, s)
	}
	return all
}

var listOfPrices = []usage.Price{
	{From: start.AddDate(-1, 0, 0), Slot: resource.CPU, Per: 1000, Hour: 40_000},
	{From: start.AddDate(-1, 0, 0), Slot: resource.GPU, Per: 1000, Hour: 2_500_001},
	{From: start.AddDate(-1, 0, 0), Slot: resource.GPU, Model: "H100", Per: 1000, Hour: 4_000_000},
	{From: start.Add(time.Hour), Slot: resource.GPU, Model: "H100", Per: 1000, Hour: 4_100_000},
	{From: start.AddDate(-1, 0, 0), Slot: resource.Memory, Per: 1 << 30, Hour: 5_003},
}

func priceList(t fataler, list ...usage.Price) usage.Prices {
	t.Helper()
	p, err := usage.NewPrices("USD", list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// want are the sums of slices by the package usagetest: of hours, and of days.
func want(all []history.Slice, prices usage.Prices) (hours, days []row) {
	cost := map[usagetest.Key]map[time.Time]int64{}
	for n := range 3 {
		hour := start.Add(time.Duration(n) * time.Hour)
		for _, s := range usagetest.Sums(all, hour, hour.Add(time.Hour)) {
			hours = append(hours, rowOf(s, usagetest.Cost(prices, s)))
			if cost[s.Key] == nil {
				cost[s.Key] = map[time.Time]int64{}
			}
			cost[s.Key][hour.Truncate(usage.Day)] += usagetest.Cost(prices, s)
		}
	}
	for n := range 2 {
		day := start.Truncate(usage.Day).AddDate(0, 0, n)
		for _, s := range usagetest.Sums(all, day, day.AddDate(0, 0, 1)) {
			days = append(days, rowOf(s, cost[s.Key][day]))
		}
	}
	for _, list := range [][]row{hours, days} {
		slices.SortStableFunc(list, func(a, b row) int {
			return slices.Compare([]string{a.key.Namespace, string(a.key.Slot), a.key.Model, a.at.String()}, []string{b.key.Namespace, string(b.key.Slot), b.key.Model, b.at.String()})
		})
	}
	return hours, days
}

// latest is what a table keeps of slices.
func latest(all []history.Slice) []history.Slice {
	type key struct {
		tx     resource.TxID
		member int
		slot   resource.Name
		from   time.Time
	}
	last := map[key]history.Slice{}
	for _, s := range all {
		last[key{s.Tx, s.Member, s.Slot, s.From}] = s
	}
	var kept []history.Slice
	for _, s := range last {
		kept = append(kept, s)
	}
	return kept
}

func TestSumsBySQLAreThoseOfTheSlices(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		prices := priceList(t, listOfPrices...)
		if err := tally.SetPrices(t.Context(), w, prices); err != nil {
			t.Fatal(err)
		}
		tries := 0
		rapid.Check(t, func(t *rapid.T) {
			tries++
			tenant := resource.TenantID(fmt.Sprint("tenant", tries))
			all := anySlices(t, tenant)
			cut := rapid.IntRange(0, len(all)).Draw(t, "late")
			if write(t, w, all[:cut]...); rapid.Bool().Draw(t, "settled between") {
				settle(t, w)
			}
			write(t, w, all[cut:]...)
			if rapid.Bool().Draw(t, "repeated") {
				write(t, w, latest(all)...)
			}
			settle(t, w)
			hours, days := want(all, prices)
			if d := cmp.Diff(hours, stored(t, w, "usage_hourly", "hour_start", tenant), cmp.AllowUnexported(row{})); d != "" {
				t.Fatalf("hours (-slices +SQL)\n%s", d)
			}
			if d := cmp.Diff(days, stored(t, w, "usage_daily", "day_start", tenant), cmp.AllowUnexported(row{})); d != "" {
				t.Fatalf("days (-slices +SQL)\n%s", d)
			}
			if n := settle(t, w); n != 0 {
				t.Fatalf("%d hours are marked after all were computed", n)
			}
		})
	})
}

func TestTheSumOfATenantHasItsOwnPeak(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		slice := func(tx, namespace, model string, fromMinute, toMinute int) history.Slice {
			return history.Slice{
				Tx: resource.TxID(tx), Tenant: "t", Namespace: namespace, Slot: resource.GPU, GPUModel: model, Allocated: 2000,
				From: start.Add(time.Duration(fromMinute) * time.Minute), To: start.Add(time.Duration(toMinute) * time.Minute),
			}
		}
		// Two peaks of 2 that never meet, and one that meets both.
		write(t, w, slice("a", "one", "H100", 0, 20), slice("b", "one", "A100", 30, 50), slice("c", "two", "H100", 10, 40))
		settle(t, w)
		var most, all string
		if err := w.SQL().QueryRow("SELECT CAST(max_usage AS TEXT), CAST(total_allocated AS TEXT) FROM usage_tenant_hourly WHERE tenant_id = 't'").Scan(&most, &all); err != nil {
			t.Fatal(err)
		}
		want := [2]string{"4.000000", "8400.000000"} // devices, device seconds: 2 × 70 min
		if w.Dialect() == warehouse.SQLite {
			want = [2]string{"4000", "8400000000"}
		}
		if rational(most).Cmp(rational(want[0])) != 0 || rational(all).Cmp(rational(want[1])) != 0 {
			t.Errorf("peak %s and integral %s, want %s and %s", most, all, want[0], want[1])
		}
	})
}

func rational(text string) *big.Rat {
	n, _ := new(big.Rat).SetString(text)
	return n
}

func TestASliceThatIsTakenBackLeavesNoSum(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		s := history.Slice{Tx: "a", Tenant: "t", Namespace: "n", Slot: resource.CPU, Allocated: 1000, From: start, To: start.Add(time.Minute)}
		write(t, w, s)
		settle(t, w)
		s.To = s.From
		write(t, w, s)
		settle(t, w)
		for _, table := range []string{"usage_levels", "usage_used_levels", "usage_tenant_levels", "usage_hourly", "usage_daily", "usage_tenant_hourly", "usage_dirty", "usage_taken"} {
			var rows int
			if err := w.SQL().QueryRow("SELECT count(*) FROM " + table).Scan(&rows); err != nil || rows != 0 {
				t.Errorf("%s has %d rows, %v; want none", table, rows, err)
			}
		}
	})
}

func TestAChangedListPricesStoredHoursAgain(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		var all []history.Slice
		for n := range 3 {
			hour := start.Add(time.Duration(n) * time.Hour)
			all = append(all, history.Slice{Tx: "a", Tenant: "t", Namespace: "n", Slot: resource.GPU, GPUModel: "H100", Allocated: 3000, From: hour, To: hour.Add(time.Hour)})
		}
		write(t, w, all...)
		settle(t, w)
		for _, list := range [][]usage.Price{nil, listOfPrices, listOfPrices[:2], listOfPrices, listOfPrices, nil} {
			prices := priceList(t, list...)
			if err := tally.SetPrices(t.Context(), w, prices); err != nil {
				t.Fatal(err)
			}
			hours, days := want(all, prices)
			if d := cmp.Diff(hours, stored(t, w, "usage_hourly", "hour_start", "t"), cmp.AllowUnexported(row{})); d != "" {
				t.Errorf("hours (-slices +SQL)\n%s", d)
			}
			if d := cmp.Diff(days, stored(t, w, "usage_daily", "day_start", "t"), cmp.AllowUnexported(row{})); d != "" {
				t.Errorf("days (-slices +SQL)\n%s", d)
			}
		}
	})
}

// Hours are kept for a while and days for ever: a changed list leaves the cost of a day
// whose hours are gone.
func TestAChangedListLeavesDaysWithoutHours(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		write(t, w, history.Slice{Tx: "a", Tenant: "t", Namespace: "n", Slot: resource.GPU, GPUModel: "H100", Allocated: 3000, From: start, To: start.Add(time.Hour)})
		settle(t, w)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(tally.SetPrices(t.Context(), w, priceList(t, listOfPrices...)))
		before := stored(t, w, "usage_daily", "day_start", "t")
		_, err := w.SQL().Exec("DELETE FROM usage_hourly")
		must(err)
		must(tally.SetPrices(t.Context(), w, priceList(t)))
		if d := cmp.Diff(before, stored(t, w, "usage_daily", "day_start", "t"), cmp.AllowUnexported(row{})); d != "" || before[0].cost == "0.0000" {
			t.Errorf("cost %s before (-before +after)\n%s", before[0].cost, d)
		}
	})
}

// A writer and a settler beside each other lose no mark.
func TestMarksAreNotLostBesideAWriter(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range 40 {
				write(t, w, history.Slice{Tx: resource.TxID(fmt.Sprint(n)), Tenant: "t", Namespace: "n", Slot: resource.CPU, Allocated: 1000, From: start, To: start.Add(time.Hour)})
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
				settle(t, w)
			}
		}
		settle(t, w)
		got := stored(t, w, "usage_hourly", "hour_start", "t")
		if len(got) != 1 || got[0].most != "40.000000" {
			t.Errorf("sums %+v, want a peak of 40", got)
		}
	})
}

// Slices are kept for a while: a mark of an hour beyond that leaves its sums as they are.
func TestAMarkBeyondTheSlicesLeavesTheSums(t *testing.T) {
	both(t, func(t *testing.T, w *warehouse.Warehouse) {
		write(t, w, history.Slice{Tx: "a", Tenant: "t", Namespace: "n", Slot: resource.CPU, Allocated: 1000, From: start, To: start.Add(time.Minute)})
		settle(t, w)
		if _, err := w.SQL().Exec("DELETE FROM usage_slices"); err != nil {
			t.Fatal(err)
		}
		write(t, w, history.Slice{Tx: "late", Tenant: "t", Namespace: "n", Slot: resource.CPU, Allocated: 1, From: start, To: start.Add(time.Minute)})
		if n, err := tally.Settle(t.Context(), w, start.Add(warehouse.SlicesKept+2*time.Hour)); n != 0 || err != nil {
			t.Errorf("%d hours were computed, %v; want none", n, err)
		}
		for table, want := range map[string]int{"usage_hourly": 1, "usage_dirty": 0, "usage_taken": 0} {
			var rows int
			if err := w.SQL().QueryRow("SELECT count(*) FROM " + table).Scan(&rows); err != nil || rows != want {
				t.Errorf("%s has %d rows, %v; want %d", table, rows, err, want)
			}
		}
	})
}
