package ask_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history/ask"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/postgres"
)

var yearScale = flag.Float64("year.scale", 1, "the part of the year of BenchmarkYear that is made: 1 is all of it")

// year is a database that was written for a year: hourly rows of 50 tenants with two
// namespaces, four slots and a peak that differs from hour to hour, and for the last 60 days
// slices of 1,000 allocations at once, each of which runs for two hours.
type year struct {
	end     time.Time // a full hour
	tenants int
	hours   int // of hourly rows
	slots   []string
	sliced  int // hours of slices
	atOnce  int
}

func fullYear() year {
	y := year{end: time.Now().UTC().Truncate(time.Hour), tenants: 50, slots: []string{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"}, atOnce: 1000}
	y.hours, y.sliced = max(48, int(8760**yearScale)), max(48, int(1440**yearScale))
	return y
}

// fill writes the rows by SQL of the database, which has them within minutes.
func (y year) fill(b *testing.B, w *warehouse.Warehouse) {
	b.Helper()
	var hours []time.Time
	for at := y.end.Add(-time.Duration(y.hours) * time.Hour); !at.After(y.end); at = at.Add(24 * time.Hour) {
		hours = append(hours, at)
	}
	for _, table := range []string{"usage_hourly", "usage_slices"} {
		if err := w.EnsureMonths(b.Context(), table, hours...); err != nil {
			b.Fatal(err)
		}
	}
	series := func(n int) string { return fmt.Sprintf("generate_series(0, %d)", n-1) }
	hour, ago := "interval '1 hour'", func(hours int) string {
		return fmt.Sprintf("timestamptz '%s'", y.end.Add(-time.Duration(hours)*time.Hour).Format(time.RFC3339))
	}
	text := func(n string) string { return n + "::text" }
	if w.Dialect() == warehouse.SQLite {
		series = func(n int) string {
			return fmt.Sprintf("(WITH RECURSIVE n (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < %d) SELECT x FROM n)", n-1)
		}
		hour, ago = "3600000", func(hours int) string { return fmt.Sprint(y.end.Add(-time.Duration(hours) * time.Hour).UnixMilli()) }
		text = func(n string) string { return n }
	}
	slots := "(SELECT '" + strings.Join(y.slots, "' AS slot UNION ALL SELECT '") + "') AS s"
	tenants, hoursOf := series(y.tenants)+" AS t (t)", series(y.hours)+" AS h (h)"
	if w.Dialect() == warehouse.SQLite {
		tenants, hoursOf = "(SELECT x AS t FROM "+series(y.tenants)+")", "(SELECT x AS h FROM "+series(y.hours)+")"
	}
	at := ago(y.hours) + " + h * " + hour
	level := "1 + (t + h) % 7"
	statements := []string{
		`INSERT INTO usage_prices (slot_name, gpu_model, from_at, per_amount, price, currency) SELECT slot, '', ` + ago(y.hours) + `, 1, 1, 'USD' FROM ` + slots,
		`INSERT INTO usage_tenant_hourly (tenant_id, slot_name, hour_start, avg_usage, max_usage, min_usage, p95_usage, p99_usage, total_allocated)
			SELECT 'tenant' || ` + text("t") + `, slot, ` + at + `, ` + level + `, ` + level + `, 0, ` + level + `, ` + level + `, 3600 FROM ` + tenants + `, ` + hoursOf + `, ` + slots,
		`INSERT INTO usage_hourly (tenant_id, namespace, slot_name, gpu_model, hour_start, avg_usage, max_usage, min_usage, p95_usage, p99_usage,
				total_requested, total_allocated, total_limit, total_measured, measured_of, cost_units)
			SELECT 'tenant' || ` + text("t") + `, 'ns' || ` + text("n") + `, slot, '', ` + at + `, 1, ` + level + `, 0, 1, 1, 3600, 3600, 0, 0, 0, 1
			FROM ` + tenants + `, (SELECT 0 AS n UNION ALL SELECT 1) AS n, ` + hoursOf + `, ` + slots,
	}
	if w.Dialect() == warehouse.Postgres {
		statements = append(statements, `INSERT INTO usage_daily SELECT tenant_id, namespace, slot_name, gpu_model, date_trunc('day', hour_start, 'UTC'), 1, max(max_usage), 0, 1, 1, 1, 1, 0, 0, 0, NULL, NULL, sum(cost_units)
			FROM usage_hourly GROUP BY 1, 2, 3, 4, 5`)
	} else {
		statements = append(statements, `INSERT INTO usage_daily SELECT tenant_id, namespace, slot_name, gpu_model, hour_start - hour_start % 86400000, 1, max(max_usage), 0, 1, 1, '1', '1', '0', '0', '0', NULL, NULL, sum(cost_units), NULL, NULL, NULL
			FROM usage_hourly GROUP BY 1, 2, 3, 4, 5`)
	}
	for _, s := range statements {
		y.exec(b, w, s)
	}
	y.fillLives(b, w)
	if w.Dialect() == warehouse.Postgres {
		y.exec(b, w, "VACUUM ANALYZE")
	} else {
		y.exec(b, w, "ANALYZE")
	}
}

// fillLives writes the allocations of the last days, their waits, preemptions and slices.
func (y year) fillLives(b *testing.B, w *warehouse.Warehouse) {
	b.Helper()
	lives := y.atOnce * y.sliced / 2
	begin := fmt.Sprintf("timestamptz '%s'", y.end.Add(-time.Duration(y.sliced)*time.Hour).Format(time.RFC3339))
	ids, ms := fmt.Sprintf("generate_series(0::bigint, %d) AS i (i)", lives-1), "interval '1 millisecond'"
	id, tenant, namespace, name := "lpad(i::text, 9, '0')", "'tenant' || (i % 50)::text", "'ns' || (i % 2)::text", "'job-' || (i % 5000)::text"
	object, none := "'[]'::json", "NULL"
	if w.Dialect() == warehouse.SQLite {
		begin = fmt.Sprint(y.end.Add(-time.Duration(y.sliced) * time.Hour).UnixMilli())
		ids, ms = fmt.Sprintf("(WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n)", lives-1), "1"
		id, tenant, namespace, name = "printf('%09d', i)", "'tenant' || (i % 50)", "'ns' || (i % 2)", "'job-' || (i % 5000)"
		object = "'[]'"
	}
	step := 2 * time.Hour.Milliseconds() / int64(y.atOnce) // between two beginnings
	created := fmt.Sprintf("%s + i * %d * %s", begin, step, ms)
	after := func(millis int64) string { return fmt.Sprintf("%s + (i * %d + %d) * %s", begin, step, millis, ms) }
	for _, s := range []string{
		`INSERT INTO allocations (allocation_id, tenant_id, namespace, allocation_name, unit_number, user_name, queue, priority, priority_class, preemption_policy, qos_class, members,
				tolerations, state, reason, message, created_at, scheduled_at, started_at, completed_at, retries, updated_at, resource_version)
			SELECT 'u' || ` + id + `, ` + tenant + `, ` + namespace + `, ` + name + `, 0, 'ada', 'queue' || (i % 5), 1, '', '', 'Burstable', 1, ` + object + `,
				CASE WHEN i % 500 = 0 THEN 'Failed' ELSE 'Succeeded' END, 'Completed', '', ` + created + `, ` + after(5000) + `, ` + after(6000) + `, ` + after(7_200_000) + `, 0, ` + after(7_200_000) + `, i + 1 FROM ` + ids,
		`INSERT INTO allocation_requests (allocation_id, slot_name, requested) SELECT 'u' || ` + id + `, slot, 1000 FROM ` + ids + `, (SELECT 'cpu' AS slot UNION ALL SELECT 'memory' UNION ALL SELECT 'nvidia.com/gpu') AS s`,
		`INSERT INTO queue_history (allocation_id, since_at, until_at, namespace, tenant_id, queue, priority, queue_state, reason, message, attempts, resource_version)
			SELECT 'u' || ` + id + `, ` + after(1000) + `, ` + after(5000) + `, ` + namespace + `, ` + tenant + `, 'queue' || (i % 5), 1, 'Active', 'Insufficient', '', 1, i + 1 FROM ` + ids,
		`INSERT INTO preemption_events (preemption_id, preempting_tenant, preempting_priority, preempted_job_id, preempted_tenant, preempted_priority, reason, initiated_at, grace_period_ms, outcome, initiated_by, resource_version)
			SELECT 't' || ` + id + `, 'ops', 9, 'u' || ` + id + `, ` + tenant + `, 1, 'higher priority', ` + after(3_600_000) + `, 30000, 'Evicted', 'preemptor', i + 1 FROM ` + ids + ` WHERE i % 20 = 0`,
		`INSERT INTO resource_quotas (namespace, quota_name, resource_type, from_at, tenant_id, hard_limit, resource_version) SELECT 'ns' || (i % 2), 'q' || i, 'cpu', ` + begin + `, 'tenant' || i, 100, 1 FROM ` + ids + ` WHERE i < 50`,
	} {
		y.exec(b, w, s)
	}
	// Each life has three slices of each slot, for it crosses one or two full hours.
	for piece, from := range []int64{0, 2_400_000, 4_800_000} {
		y.exec(b, w, `INSERT INTO usage_slices (tx_id, member, slot_name, from_at, to_at, allocation_id, namespace, tenant_id, node_id, gpu_model, requested, allocated, measured, resource_version)
			SELECT 't' || `+id+`, 0, slot, `+after(from)+`, `+after(from+2_400_000)+`, 'u' || `+id+`, `+namespace+`, `+tenant+`, 'node', '', 1, 1, `+none+`, `+fmt.Sprint(piece)+`
			FROM `+ids+`, (SELECT 'cpu' AS slot UNION ALL SELECT 'memory' UNION ALL SELECT 'nvidia.com/gpu') AS s`)
	}
}

func (y year) exec(b *testing.B, w *warehouse.Warehouse, statement string) {
	b.Helper()
	conn, err := w.SQL().Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if w.Dialect() == warehouse.Postgres {
		if _, err := conn.ExecContext(b.Context(), "SET statement_timeout = 0"); err != nil {
			b.Fatal(err)
		}
		defer func() { _, _ = conn.ExecContext(context.Background(), "RESET statement_timeout") }()
	}
	began := time.Now()
	if _, err := conn.ExecContext(b.Context(), statement); err != nil {
		b.Fatalf("%v\n%s", err, statement)
	}
	b.Logf("%6.1f s  %.60s", time.Since(began).Seconds(), strings.TrimSpace(statement))
}

// questions are those of the API, each about the n-th tenant.
func (y year) questions(h *ask.History) map[string]func(ctx context.Context, n int) error {
	tenant := func(n int) resource.TenantID { return resource.TenantID(fmt.Sprint("tenant", n%y.tenants)) }
	own := func(n int) ask.Scope { return ask.Scope{Tenants: []ask.TenantScope{{Tenant: tenant(n)}}} }
	all := ask.Scope{All: true}
	usage := func(period time.Duration) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			_, err := h.Tenant(ctx, tenant(n), y.end.Add(-period), y.end)
			return err
		}
	}
	allocations := func(q func(n int) ask.Query) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			_, _, err := h.Allocations(ctx, q(n))
			return err
		}
	}
	events := func(q func(n int) ask.Query) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			_, _, err := h.Events(ctx, q(n))
			return err
		}
	}
	preemptions := func(q func(n int) ask.Query) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			_, _, err := h.Preemptions(ctx, q(n))
			return err
		}
	}
	middle := y.end.Add(-time.Duration(y.sliced) * time.Hour / 2)
	return map[string]func(context.Context, int) error{
		"usage/24h": usage(24 * time.Hour), "usage/30d": usage(30 * 24 * time.Hour), "usage/366d": usage(366 * 24 * time.Hour),
		"waits/all": func(ctx context.Context, _ int) error {
			_, err := h.Waits(ctx, all, y.end.Add(-24*time.Hour), y.end)
			return err
		},
		"waits/tenant": func(ctx context.Context, n int) error {
			_, err := h.Waits(ctx, own(n), y.end.Add(-24*time.Hour), y.end)
			return err
		},
		"trend": func(ctx context.Context, n int) error {
			_, _, err := h.Held(ctx, tenant(n), fmt.Sprint("ns", n%2), fmt.Sprint("q", n%50), nil, y.end.Add(-24*time.Hour))
			return err
		},
		"allocations/all":    allocations(func(int) ask.Query { return ask.Query{Scope: all} }),
		"allocations/tenant": allocations(func(n int) ask.Query { return ask.Query{Scope: own(n)} }),
		"allocations/nobody": allocations(func(n int) ask.Query {
			return ask.Query{Scope: ask.Scope{Tenants: []ask.TenantScope{{Tenant: "gone"}}}}
		}),
		"allocations/name": allocations(func(n int) ask.Query {
			return ask.Query{Scope: all, Namespace: fmt.Sprint("ns", n%2), Name: fmt.Sprint("job-", n%5000)}
		}),
		"allocations/no-name": allocations(func(int) ask.Query { return ask.Query{Scope: all, Name: "nobody"} }),
		"allocations/failed":  allocations(func(n int) ask.Query { return ask.Query{Scope: own(n), State: "Failed"} }),
		"allocations/middle":  allocations(func(n int) ask.Query { return ask.Query{Scope: own(n), Until: middle, Limit: 1000} }),
		"events/all":          events(func(int) ask.Query { return ask.Query{Scope: all} }),
		"events/tenant":       events(func(n int) ask.Query { return ask.Query{Scope: own(n)} }),
		"events/name":         events(func(n int) ask.Query { return ask.Query{Scope: all, Name: fmt.Sprint("job-", n%5000)} }),
		"events/middle":       events(func(n int) ask.Query { return ask.Query{Scope: own(n), Until: middle} }),
		"preemptions/all":     preemptions(func(int) ask.Query { return ask.Query{Scope: all} }),
		"preemptions/tenant":  preemptions(func(n int) ask.Query { return ask.Query{Scope: own(n)} }),
		"preemptions/name":    preemptions(func(n int) ask.Query { return ask.Query{Scope: all, Name: fmt.Sprint("job-", 20*(n%200))} }),
	}
}

// BenchmarkYear asks each question of the API of a database that was written for a year,
// and reports the median and the 99th percentile of the answers. The bar is 100 ms on PostgreSQL.
//
//	go test ./coordinator/history/ask -run '^$' -bench Year -benchtime 200x -timeout 60m -args -year.scale 1
func BenchmarkYear(b *testing.B) {
	b.Run("PostgreSQL", func(b *testing.B) {
		server := postgres.Start(b, "shared_buffers=512MB", "max_wal_size=4GB")
		benchmarkYear(b, server.Database(b), server.CPU)
	})
	b.Run("SQLite", func(b *testing.B) {
		benchmarkYear(b, "sqlite:"+filepath.Join(b.TempDir(), "history.db"), func() time.Duration { return 0 })
	})
}

func benchmarkYear(b *testing.B, dsn string, database func() time.Duration) {
	w, y := warehousetest.Open(b, dsn), fullYear()
	y.fill(b, w)
	questions := y.questions(ask.Of(w))
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range questions {
			if !yield(name) {
				return
			}
		}
	}) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			before := database()
			for n := 0; b.Loop(); n++ {
				began := time.Now()
				if err := questions[name](b.Context(), n); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			b.ReportMetric(float64((database()-before).Microseconds())/1000/float64(b.N), "database-ms/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
