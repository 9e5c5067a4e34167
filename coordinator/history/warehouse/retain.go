package warehouse

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/history"
)

const day = 24 * time.Hour

// Retention is how long rows of the kinds stay that the specification names. A duration
// of 0 is the specification's; it is the archive's there, as the store is the fast
// storage and the history the archive.
type Retention struct {
	Completed   time.Duration // completed allocations with grants, waits and jobs: 2 years
	Heartbeats  time.Duration // 30 days
	UsageHourly time.Duration // sums of hours: 3 years
	Preemptions time.Duration // 1 year
	Audit       time.Duration // 7 years
	Quotas      time.Duration // quotas that ended, and their use: 3 years
}

// The bounds of a period that is not 0.
const (
	LeastKept = day
	MostKept  = 100 * 365 * day
)

// period is how long rows of one table stay.
type period struct {
	kind, table string
	column      string // the instant that rows are judged by; NULL stays
	keep        func(Retention) time.Duration
	key         string // of tables without months: the columns of the primary key
}

// SlicesKept is how long slices of use stay. The sums of an older hour cannot be computed
// anew.
const SlicesKept = 60 * day

func fixed(days time.Duration) func(Retention) time.Duration {
	return func(Retention) time.Duration { return days }
}

func keepCompleted(r Retention) time.Duration   { return cmp.Or(r.Completed, 730*day) }
func keepHeartbeats(r Retention) time.Duration  { return cmp.Or(r.Heartbeats, 30*day) }
func keepHours(r Retention) time.Duration       { return cmp.Or(r.UsageHourly, 1095*day) }
func keepPreemptions(r Retention) time.Duration { return cmp.Or(r.Preemptions, 365*day) }
func keepAudit(r Retention) time.Duration       { return cmp.Or(r.Audit, 2555*day) }
func keepQuotas(r Retention) time.Duration      { return cmp.Or(r.Quotas, 1095*day) }

// periods are in the order in which rows go.
var periods = []period{
	{"completed allocations", "queue_history", "until_at", keepCompleted, "allocation_id, since_at, reverted"},
	{"completed allocations", "grants", "ended_at", keepCompleted, "tx_id, reverted"}, // with members and resources
	{"completed allocations", "allocations", "completed_at", keepCompleted, "allocation_id, reverted"},
	{"completed allocations", "jobs", "completed_at", keepCompleted, "job_id, reverted"},
	{"deleted nodes", "nodes", "deleted_at", fixed(1095 * day), "node_id, reverted"},
	{"heartbeats", "node_heartbeats", "heartbeat_time", keepHeartbeats, "node_id, heartbeat_time"},
	{"condition changes", "node_condition_changes", "changed_at", fixed(365 * day), "node_id, condition_type, resource_version, reverted"},
	{"preemption events", "preemption_events", "initiated_at", keepPreemptions, "preemption_id, reverted"},
	{"audit logs", "audit_log", "at", keepAudit, "audit_id, at, reverted"},
	{"quota history", "resource_quotas", "to_at", keepQuotas, "namespace, quota_name, resource_type, from_at, reverted"},
	{"quota history", "quota_usage_history", "recorded_at", keepQuotas, "tenant_id, namespace, quota_name, resource_type, recorded_at"},
	{"usage slices", "usage_slices", "from_at", fixed(SlicesKept), "tx_id, member, slot_name, from_at, reverted"},
	{"usage hourly", "usage_hourly", "hour_start", keepHours, "tenant_id, hour_start, namespace, slot_name, gpu_model"},
	{"usage hourly", "usage_tenant_hourly", "hour_start", keepHours, "tenant_id, hour_start, slot_name"},
	{"usage hourly", "usage_used_levels", "hour_start", keepHours, "tenant_id, namespace, slot_name, gpu_model, hour_start, level"},
	{"usage hourly", "usage_levels", "hour_start", keepHours, "tenant_id, namespace, slot_name, gpu_model, hour_start, level"},
	{"usage hourly", "usage_tenant_levels", "hour_start", keepHours, "tenant_id, slot_name, hour_start, level"},
}

// only is a further condition on the rows of a table that go. The newest change of a
// condition is the present one, however old it is: it stays while the node has a row. The
// rows of work that has not ended stay: an earlier wait or run of a unit, a unit of a job
// that goes on. So does an eviction that goes on.
var only = map[string]string{
	"queue_history":     ofEndedWork("queue_history"),
	"grants":            ofEndedWork("grants"),
	"allocations":       ` AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.job_id = allocations.job_id AND j.reverted = 0 AND j.completed_at IS NULL)`,
	"preemption_events": ` AND outcome IS DISTINCT FROM '` + history.OutcomeEvicting + `'`,
	"node_condition_changes": ` AND (EXISTS (SELECT 1 FROM node_condition_changes later WHERE later.node_id = node_condition_changes.node_id AND later.reverted = 0
		AND later.condition_type = node_condition_changes.condition_type AND later.resource_version > node_condition_changes.resource_version)
		OR NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.node_id = node_condition_changes.node_id))`,
}

// ofEndedWork is the condition that the allocation of a row has ended, and its job.
func ofEndedWork(table string) string {
	return ` AND NOT EXISTS (SELECT 1 FROM allocations a LEFT JOIN jobs j ON j.job_id = a.job_id AND j.reverted = 0 AND j.completed_at IS NULL
		WHERE a.allocation_id = ` + table + `.allocation_id AND a.reverted = 0 AND (a.completed_at IS NULL OR j.job_id IS NOT NULL))`
}

// keepDetached is how long a detached month stays as a table of its own, for whoever
// archives it.
const keepDetached = 30 * day

// deleteAtOnce is the most rows that one statement deletes.
const deleteAtOnce = 5_000

// Retained is what retention has done, or would do, to one table.
type Retained struct {
	Kind, Table string
	// Before is the bound: older rows go.
	Before time.Time
	// Rows are those that go by DELETE, rows that belong to them not counted.
	Rows int64
	// Detached are the months that leave their table, with all their rows. They stay
	// as tables for 30 days. PostgreSQL alone.
	Detached []string
	// Dropped are the months that were detached 30 days ago.
	Dropped []string
}

// Retain deletes what is older than the retention of its kind, and makes the months
// ahead. Rows go by whole days (UTC): the sum of a day is priced anew from its hours, and
// must have all of them or none. Of tables with months it detaches those that are older as a whole, so a row
// stays up to a month longer. dryRun changes nothing. The answer has a line for each
// table, whether anything goes or not; after an error, for each table that had none.
func (w *Warehouse) Retain(ctx context.Context, keep Retention, now time.Time, dryRun bool) ([]Retained, error) {
	months := map[string]string{}
	if w.dialect == Postgres {
		var err error
		if months, err = w.partitionedTables(ctx); err != nil {
			return nil, fmt.Errorf("retention: %w", err)
		}
		if !dryRun {
			if err := w.MakeMonths(ctx, now); err != nil {
				return nil, fmt.Errorf("retention: %w", err)
			}
		}
	}
	var all []Retained
	var failed []error
	for _, p := range periods {
		r := Retained{Kind: p.kind, Table: p.table, Before: now.UTC().Add(-p.keep(keep)).Truncate(day)}
		var err error
		if _, monthly := months[p.table]; monthly {
			err = w.retainMonths(ctx, &r, now, dryRun)
		} else {
			r.Rows, err = w.retainRows(ctx, p, r.Before, dryRun)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("retention of table %s: %w", p.table, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		all = append(all, r)
	}
	return all, errors.Join(failed...)
}

// retainRows deletes rows in portions, so that no statement holds locks for long.
func (w *Warehouse) retainRows(ctx context.Context, p period, before time.Time, dryRun bool) (n int64, err error) {
	old := fmt.Sprintf("FROM %s WHERE %s < ?%s", p.table, p.column, only[p.table])
	bound := w.dialect.instant(before)
	if dryRun {
		err = w.db.QueryRowContext(ctx, w.dialect.sql("SELECT count(*) "+old), bound).Scan(&n)
		return n, err
	}
	statement := w.dialect.sql(fmt.Sprintf("DELETE FROM %s WHERE (%s) IN (SELECT %[2]s %s LIMIT %d)", p.table, p.key, old, deleteAtOnce))
	for {
		result, err := w.db.ExecContext(ctx, statement, bound)
		if err != nil {
			return n, err
		}
		deleted, err := result.RowsAffected()
		n += deleted
		if err != nil || deleted < deleteAtOnce {
			return n, err
		}
	}
}

// retainMonths detaches the months of a table that are old as a whole, and drops those
// that were detached long ago.
func (w *Warehouse) retainMonths(ctx context.Context, r *Retained, now time.Time, dryRun bool) error {
	attached, err := w.attached(ctx, r.Table)
	if err != nil {
		return err
	}
	for name, month := range attached {
		if !month.AddDate(0, 1, 0).After(r.Before) {
			r.Detached = append(r.Detached, name)
		}
	}
	slices.Sort(r.Detached)
	found, err := w.db.QueryContext(ctx, "SELECT table_name FROM history_detached WHERE parent = $1 AND detached_at < $2 ORDER BY table_name", r.Table, now.Add(-keepDetached))
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var name string
		if err := found.Scan(&name); err != nil {
			return err
		}
		r.Dropped = append(r.Dropped, name)
	}
	if err := cmp.Or(found.Err(), found.Close()); err != nil || dryRun {
		return err
	}
	for _, name := range r.Dropped {
		if err := w.both(ctx, "", "DROP TABLE IF EXISTS "+name, "DELETE FROM history_detached WHERE table_name = '"+name+"'"); err != nil {
			return err
		}
	}
	for _, name := range r.Detached {
		month := attached[name]
		if err := w.both(ctx, fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass('%s'))", name), fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", r.Table, name),
			fmt.Sprintf("INSERT INTO history_detached (table_name, parent, from_at, to_at, detached_at) VALUES ('%s', '%s', '%s', '%s', '%s')", name, r.Table,
				month.Format(time.RFC3339), month.AddDate(0, 1, 0).Format(time.RFC3339), now.UTC().Format(time.RFC3339))); err != nil {
			return err
		}
		w.forgetMonths()
	}
	return nil
}

// both runs two statements of the schema in one transaction, unless the answer to a
// question is no: then another coordinator has run them. "" asks nothing.
func (w *Warehouse) both(ctx context.Context, question, first, second string) error {
	return w.alone(ctx, func(conn *sql.Conn) error {
		needed := true
		if question != "" {
			if err := conn.QueryRowContext(ctx, question).Scan(&needed); err != nil || !needed {
				return err
			}
		}
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for _, statement := range []string{first, second} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", strings.SplitN(statement, " VALUES", 2)[0], cmp.Or(err, ignoreDone(tx.Rollback())))
			}
		}
		return tx.Commit()
	})
}

// Now is the time of the database: that of the server of PostgreSQL, and of this process for
// SQLite. What is old enough to go does not depend on which coordinator asks.
func (w *Warehouse) Now(ctx context.Context) (time.Time, error) {
	if w.dialect == SQLite {
		return time.Now(), nil
	}
	var now time.Time
	if err := w.db.QueryRowContext(ctx, "SELECT now()").Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the clock of the database: %w", err)
	}
	return now, nil
}
