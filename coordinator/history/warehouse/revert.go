package warehouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Revert takes back the rows of all changes after a revision: the store was restored
// to it. The rows stay, marked with the number of the revert, and no sum counts them.
// The position becomes to, without a mark. The sums of the hours of the reverted slices
// are to be computed anew: usage_dirty names the hours. A revision at or behind the
// position reverts nothing.
//
// A row has its last state alone. The rows that changed after to have no current
// row then, until the projector writes their state at to.
func (w *Warehouse) Revert(ctx context.Context, to resource.Revision) error {
	ctx, cancel := context.WithTimeout(ctx, RevertTimeout)
	defer cancel()
	err := w.transact(ctx, func(t *transaction) error {
		if t.dialect == Postgres {
			// The one statement timeout does not fit: a revert may touch months.
			if _, err := t.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
				return err
			}
			if _, err := positionOf(ctx, t, " FOR UPDATE"); err != nil {
				return err
			}
		}
		var number int
		if err := t.QueryRowContext(ctx, "SELECT coalesce(max(number), 0) + 1 FROM history_reverts").Scan(&number); err != nil {
			return err
		}
		count, err := t.revertRows(ctx, to, number)
		if err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, t.dialect.sql("INSERT INTO history_reverts (number, to_revision, at, rows) VALUES (?, ?, ?, ?)"),
			number, int64(to), t.dialect.instant(time.Now()), count); err != nil {
			return err
		}
		return t.moveTo(ctx, history.Position{Revision: to}, time.Time{})
	})
	if err != nil {
		return fmt.Errorf("revert the history to revision %d: %w", to, err)
	}
	return nil
}

// RevertTimeout bounds one Revert.
const RevertTimeout = 30 * time.Minute

// revertRows marks rows with the number of the revert, and counts those of parents and
// of tables without parents. Children follow by the foreign key.
func (t *transaction) revertRows(ctx context.Context, to resource.Revision, number int) (count int64, err error) {
	for _, table := range tables() {
		if table.unreverted || table.parent != nil || table == usageSlices || table == gaps {
			continue
		}
		n, err := t.affect(ctx, fmt.Sprintf("UPDATE %s SET reverted = ? WHERE resource_version > ? AND reverted = 0", table.name), number, int64(to))
		if err != nil {
			return 0, fmt.Errorf("table %s: %w", table.name, err)
		}
		count += n
	}
	n, err := t.affect(ctx, "UPDATE usage_slices SET reverted = ? WHERE reverted = 0 AND tx_id IN (SELECT tx_id FROM grants WHERE reverted = ?)", number, number)
	if err != nil {
		return 0, fmt.Errorf("table usage_slices: %w", err)
	}
	count += n
	hour := "date_trunc('hour', from_at, 'UTC')"
	if t.dialect == SQLite {
		hour = "from_at - from_at % 3600000"
	}
	for _, statement := range []string{
		"INSERT INTO usage_dirty (" + strings.Join([]string{"hour_start", "tenant_id", "namespace", "slot_name", "gpu_model"}, ", ") + ") SELECT DISTINCT " + hour +
			", tenant_id, namespace, slot_name, gpu_model FROM usage_slices WHERE reverted = ? ON CONFLICT DO NOTHING",
		"UPDATE history_gaps SET reverted = ? WHERE from_revision > " + fmt.Sprint(int64(to)) + " AND reverted = 0",
	} {
		if _, err := t.affect(ctx, statement, number); err != nil {
			return 0, err
		}
	}
	// The registry's rows describe names and count nothing: they stay, and a later row wins.
	_, err = t.affect(ctx, "UPDATE resource_slot_types SET resource_version = ? WHERE resource_version > ?", int64(to), int64(to))
	return count, err
}

// affect runs a statement with "?" and returns the count of its rows.
func (t *transaction) affect(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := t.ExecContext(ctx, t.dialect.sql(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
