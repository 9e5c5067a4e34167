package warehouse

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// monthsAhead is how many months beyond the present one have a partition already: a
// partition is made under a lock that waits for all readers of its table.
const monthsAhead = 3

// partitioned are the tables of PostgreSQL that have a partition for each month, by
// the database's own word: a migration may add some. One with a default partition takes
// care of itself: a month cannot be made beside rows that are in the default partition.
const partitioned = `SELECT c.relname, a.attname FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid
	JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
	WHERE p.partstrat = 'r' AND p.partdefid = 0 AND c.relnamespace = to_regnamespace(current_schema()) ORDER BY c.relname`

// monthOf is the beginning of an instant's month.
func monthOf(t time.Time) time.Time {
	t = bounded(t)
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// partitionName is the name of a table's month: usage_slices_2026_11.
func partitionName(table string, month time.Time) string {
	return fmt.Sprintf("%s_%04d_%02d", table, month.Year(), int(month.Month()))
}

// prepareMonths makes the partitions of the present month and of those ahead.
func (w *Warehouse) prepareMonths(ctx context.Context) error { return w.MakeMonths(ctx, time.Now()) }

// MakeMonths makes the partitions of the month of now, of the month before, and of
// three months ahead, for all tables that have partitions. Retain calls it. SQLite has no partitions.
func (w *Warehouse) MakeMonths(ctx context.Context, now time.Time) error {
	if w.dialect == SQLite {
		return nil
	}
	parents, err := w.partitionedTables(ctx)
	if err != nil {
		return err
	}
	var wanted []partition
	for parent := range parents {
		for n := -1; n <= monthsAhead; n++ {
			wanted = append(wanted, partition{parent, monthOf(monthOf(now).AddDate(0, n, 0))})
		}
	}
	return w.makePartitions(ctx, wanted)
}

// partitionedTables are the partitioned tables with the columns of their months.
func (w *Warehouse) partitionedTables(ctx context.Context) (map[string]string, error) {
	found, err := w.db.QueryContext(ctx, partitioned)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	tables := map[string]string{}
	for found.Next() {
		var table, column string
		if err := found.Scan(&table, &column); err != nil {
			return nil, err
		}
		tables[table] = column
	}
	return tables, found.Err()
}

type partition struct {
	parent string
	month  time.Time
}

// EnsureMonths makes the partitions of a table for the months of instants, where they
// are absent. Writers of tables that a migration added call it before they write.
func (w *Warehouse) EnsureMonths(ctx context.Context, table string, instants ...time.Time) error {
	if w.dialect == SQLite {
		return nil
	}
	wanted := map[partition]bool{}
	for _, at := range instants {
		wanted[partition{table, monthOf(at)}] = true
	}
	return w.makeAbsent(ctx, wanted)
}

// ensureMonths makes the partitions that rows need.
func (w *Warehouse) ensureMonths(ctx context.Context, written ...*rows) error {
	if w.dialect == SQLite {
		return nil
	}
	wanted := map[partition]bool{}
	for _, r := range written {
		column := 0
		for r.columns[column].name != r.month {
			column++
		}
		var last time.Time
		for _, row := range r.rows {
			if month := monthOf(row[column].(time.Time)); month != last {
				wanted[partition{r.name, month}], last = true, month
			}
		}
	}
	return w.makeAbsent(ctx, wanted)
}

func (w *Warehouse) makeAbsent(ctx context.Context, wanted map[partition]bool) error {
	var absent []partition
	w.mu.Lock()
	for p := range wanted {
		if !w.months[partitionName(p.parent, p.month)] {
			absent = append(absent, p)
		}
	}
	w.mu.Unlock()
	if len(absent) == 0 {
		return nil
	}
	return w.makePartitions(ctx, absent)
}

// makePartitions makes partitions that are absent.
func (w *Warehouse) makePartitions(ctx context.Context, wanted []partition) error {
	err := w.alone(ctx, func(conn *sql.Conn) error {
		for _, p := range wanted {
			if err := makePartition(ctx, conn, p); err != nil {
				return fmt.Errorf("make a month of table %s: %w", p.parent, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.months == nil {
		w.months = map[string]bool{}
	}
	for _, p := range wanted {
		w.months[partitionName(p.parent, p.month)] = true
	}
	return nil
}

// makePartition makes one partition. A month that retention has detached keeps its
// name, and rows that come late are in a month of another name.
func makePartition(ctx context.Context, conn *sql.Conn, p partition) error {
	name := partitionName(p.parent, p.month)
	for late := 1; ; late++ {
		var exists, attached bool
		if err := conn.QueryRowContext(ctx, "SELECT count(*) > 0, count(*) FILTER (WHERE c.relispartition) > 0 FROM pg_class c WHERE c.oid = to_regclass($1)", name).
			Scan(&exists, &attached); err != nil {
			return err
		}
		if attached {
			return nil
		}
		if !exists {
			break
		}
		name = fmt.Sprintf("%s_late%d", partitionName(p.parent, p.month), late)
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %s PARTITION OF %s FOR VALUES FROM ('%s') TO ('%s')",
		name, p.parent, p.month.Format(time.RFC3339), p.month.AddDate(0, 1, 0).Format(time.RFC3339)))
	return err
}

// attached are the partitions of a table with their months.
func (w *Warehouse) attached(ctx context.Context, parent string) (map[string]time.Time, error) {
	found, err := w.db.QueryContext(ctx, "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($1)", parent)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	months := map[string]time.Time{}
	for found.Next() {
		var name string
		if err := found.Scan(&name); err != nil {
			return nil, err
		}
		year, month := 0, 0
		if _, err := fmt.Sscanf(strings.TrimPrefix(name, parent), "_%04d_%02d", &year, &month); err != nil {
			continue // somebody else's
		}
		months[name] = time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	}
	return months, found.Err()
}

// forgetMonths has the next write look for its months again.
func (w *Warehouse) forgetMonths() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.months = nil
}
