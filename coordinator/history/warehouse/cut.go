package warehouse

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/history"
)

// This file takes slices back, and finds where a member's slices stand.

// cutSlices are the slices s behind the instant of a cut c. No slice is longer than an hour.
const cutSlices = `s.tx_id = c.tx_id AND s.member = c.member AND s.slot_name = c.slot_name AND s.reverted = 0 AND s.to_at > c.at AND s.from_at >= `

// cut applies cuts, and marks the hours of the slices that they change.
func (t *transaction) cut(ctx context.Context, cuts []history.Cut) error {
	if t.dialect == SQLite {
		return t.cutSQLite(ctx, cuts)
	}
	for from := 0; from < len(cuts); from += chunk {
		part := cuts[from:min(from+chunk, len(cuts))]
		txs, members, slots, instants := make([]string, len(part)), make([]int64, len(part)), make([]string, len(part)), make([]time.Time, len(part))
		for i, c := range part {
			txs[i], members[i], slots[i], instants[i] = string(c.Tx), int64(c.Member), string(c.Slot), bounded(c.At)
		}
		const of = "unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[]) AS c (tx_id, member, slot_name, at)"
		const where = cutSlices + "c.at - interval '1 hour'"
		for _, statement := range []string{
			`INSERT INTO usage_dirty (hour_start, tenant_id, namespace, slot_name, gpu_model)
				SELECT DISTINCT date_trunc('hour', s.from_at, 'UTC'), s.tenant_id, s.namespace, s.slot_name, s.gpu_model
				FROM ` + of + ` JOIN usage_slices s ON ` + where + ` ON CONFLICT DO NOTHING`,
			`DELETE FROM usage_slices s USING ` + of + ` WHERE s.from_at >= c.at AND ` + where,
			`UPDATE usage_slices s SET to_at = c.at, counter = NULL FROM ` + of + ` WHERE ` + where,
		} {
			if _, err := t.ExecContext(ctx, statement, txs, members, slots, instants); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *transaction) cutSQLite(ctx context.Context, cuts []history.Cut) error {
	const of = "(SELECT ?1 AS tx_id, ?2 AS member, ?3 AS slot_name, ?4 AS at) AS c"
	const where = cutSlices + "c.at - 3600000"
	for _, c := range cuts {
		for _, statement := range []string{
			`INSERT INTO usage_dirty (hour_start, tenant_id, namespace, slot_name, gpu_model)
				SELECT DISTINCT s.from_at - s.from_at % 3600000, s.tenant_id, s.namespace, s.slot_name, s.gpu_model
				FROM ` + of + ` JOIN usage_slices s ON ` + where + ` ON CONFLICT DO NOTHING`,
			`DELETE FROM usage_slices WHERE tx_id = ?1 AND member = ?2 AND slot_name = ?3 AND reverted = 0 AND to_at > ?4 AND from_at >= ?4`,
			`UPDATE usage_slices AS s SET to_at = c.at, counter = NULL FROM ` + of + ` WHERE ` + where,
		} {
			if _, err := t.ExecContext(ctx, statement, string(c.Tx), c.Member, string(c.Slot), t.dialect.instant(bounded(c.At))); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes slices without duration, whose hours are marked.
func (t *transaction) remove(ctx context.Context, empty []history.Slice) error {
	for _, s := range empty {
		if _, err := t.ExecContext(ctx, t.dialect.sql("DELETE FROM usage_slices WHERE tx_id = ? AND member = ? AND slot_name = ? AND from_at = ? AND reverted = 0"),
			string(s.Tx), s.Member, string(s.Slot), t.dialect.instant(bounded(s.From))); err != nil {
			return fmt.Errorf("remove a slice: %w", err)
		}
	}
	return nil
}

// LastCounted returns, of each slot of the members of grants without an end, the last slice
// that has a counter: its key, its end, its measured use and the counter.
func (w *Warehouse) LastCounted(ctx context.Context) ([]history.Slice, error) {
	// OFFSET has the database find the keys first, by the primary key, and not by a look at
	// all slices.
	rows, err := w.db.QueryContext(ctx, `SELECT s.tx_id, s.member, s.slot_name, s.from_at, s.to_at, CAST(s.measured AS TEXT) AS measured, s.counter FROM (
			SELECT r.tx_id, r.member, r.slot_name, (SELECT max(x.from_at) FROM usage_slices x
				WHERE x.tx_id = r.tx_id AND x.member = r.member AND x.slot_name = r.slot_name AND x.reverted = 0 AND x.counter IS NOT NULL) AS from_at
			FROM grants g JOIN grant_resources r ON r.tx_id = g.tx_id AND r.reverted = 0 WHERE g.ended_at IS NULL AND g.reverted = 0 LIMIT 1000000000 OFFSET 0) AS k
		JOIN usage_slices s ON s.tx_id = k.tx_id AND s.member = k.member AND s.slot_name = k.slot_name AND s.from_at = k.from_at AND s.reverted = 0`)
	if err != nil {
		return nil, fmt.Errorf("read the last counters of live grants: %w", err)
	}
	defer rows.Close()
	var last []history.Slice
	for rows.Next() {
		var s history.Slice
		var from, to stamp
		var measured sql.NullString
		if err := rows.Scan(&s.Tx, &s.Member, &s.Slot, &from, &to, &measured, &s.Counter); err != nil {
			return nil, fmt.Errorf("read the last counters of live grants: %w", err)
		}
		s.From, s.To = time.Time(from), time.Time(to)
		base, known, err := w.amount(stored{"measured": measured}, "measured", s.Slot.Scale()*1000)
		if err != nil {
			return nil, fmt.Errorf("slice of %s member %d %s: %w", s.Tx, s.Member, s.Slot, err)
		}
		if !known {
			base = 0
		}
		s.Measured = &base
		last = append(last, s)
	}
	return last, rows.Err()
}

// stamp reads an instant of either database.
type stamp time.Time

// Scan implements sql.Scanner.
func (s *stamp) Scan(value any) error {
	switch v := value.(type) {
	case time.Time:
		*s = stamp(v.UTC())
	case int64:
		*s = stamp(time.UnixMilli(v).UTC())
	default:
		return fmt.Errorf("an instant of type %T", value)
	}
	return nil
}
