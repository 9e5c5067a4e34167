// Package tally computes the sums of the hours and days whose slices have changed, by
// SQL, in the history's database. The sums are those that coordinator/history/usage
// defines; the tests of both hold that they agree.
//
// The writer of slices marks their hours (usage_dirty). Settle computes the marked hours
// anew from all their slices, so that late and repeated slices are corrections that
// count once. Settle may run beside the writer, and in any coordinator.
package tally

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/history/warehouse"
)

// Bounds of a Settle.
const (
	// hourTimeout bounds the computing of one hour.
	hourTimeout = 10 * time.Minute
	// mostHours is the most hours of one call, the oldest first.
	mostHours = 10_000
)

// Settle computes the marked hours, the oldest first, and the days that they belong to.
// It returns how many hours it has computed; after an error, those before it are done. A
// crash costs nothing: marks go with the sums, in one SQL transaction for each hour.
//
// A mark of an hour that is older than slices are kept goes without effect: the sums that
// the hour has are better than those of no slices.
func Settle(ctx context.Context, w *warehouse.Warehouse, now time.Time) (hours int, err error) {
	d := dialectOf(w.Dialect())
	if err := takeMarks(ctx, w, d); err != nil {
		return 0, fmt.Errorf("usage: take the marks of changed hours: %w", err)
	}
	if err := dropOldMarks(ctx, w, d, now); err != nil {
		return 0, fmt.Errorf("usage: drop the marks of hours without slices: %w", err)
	}
	marked, err := markedHours(ctx, w, d)
	if err != nil {
		return 0, fmt.Errorf("usage: read the marked hours: %w", err)
	}
	if err := w.EnsureMonths(ctx, "usage_hourly", marked...); err != nil {
		return 0, fmt.Errorf("usage: make the months of the marked hours: %w", err)
	}
	ends := make([]time.Time, len(marked))
	for i, hour := range marked {
		ends[i] = hour.Add(time.Hour)
	}
	if err := w.EnsureMonths(ctx, "quota_usage_history", ends...); err != nil {
		return 0, fmt.Errorf("usage: make the months of the quotas' use: %w", err)
	}
	for _, hour := range marked {
		if err := settleHour(ctx, w, d, hour, now); err != nil {
			return hours, fmt.Errorf("usage: sum the hour %s: %w", hour.Format(time.RFC3339), err)
		}
		hours++
	}
	return hours, nil
}

// dropOldMarks deletes the marks of hours whose slices may be gone.
func dropOldMarks(ctx context.Context, w *warehouse.Warehouse, d dialect, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, warehouse.WriteTimeout)
	defer cancel()
	return within(ctx, w, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM usage_taken WHERE hour_start < $1", d.instant(now.Add(-warehouse.SlicesKept)))
		return err
	})
}

// within runs steps in one SQL transaction.
func within(ctx context.Context, w *warehouse.Warehouse, steps func(*sql.Tx) error) error {
	tx, err := w.SQL().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := steps(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// takeMarks moves marks to where the writer does not wait for them. The lock of the
// position keeps a writer out meanwhile: its slices and their marks are both committed,
// or neither is.
func takeMarks(ctx context.Context, w *warehouse.Warehouse, d dialect) error {
	ctx, cancel := context.WithTimeout(ctx, warehouse.WriteTimeout)
	defer cancel()
	return within(ctx, w, func(tx *sql.Tx) error {
		for _, statement := range []string{
			d.lockPosition,
			"INSERT INTO usage_taken SELECT * FROM usage_dirty WHERE true ON CONFLICT DO NOTHING",
			"DELETE FROM usage_dirty",
		} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// markedHours lists the hours that are taken, the oldest first.
func markedHours(ctx context.Context, w *warehouse.Warehouse, d dialect) ([]time.Time, error) {
	rows, err := w.SQL().QueryContext(ctx, fmt.Sprintf("SELECT DISTINCT hour_start FROM usage_taken ORDER BY hour_start LIMIT %d", mostHours))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var hours []time.Time
	for rows.Next() {
		hour, scan := d.scan()
		if err := rows.Scan(scan); err != nil {
			return nil, err
		}
		hours = append(hours, hour())
	}
	return hours, rows.Err()
}

// settleHour computes one hour, its day, and the use of quotas in the hour, for the keys
// that are taken.
func settleHour(ctx context.Context, w *warehouse.Warehouse, d dialect, hour, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, hourTimeout)
	defer cancel()
	day := hour.UTC().Truncate(24 * time.Hour)
	return within(ctx, w, func(tx *sql.Tx) error {
		if d.unbounded != "" {
			if _, err := tx.ExecContext(ctx, d.unbounded); err != nil {
				return err
			}
		}
		for _, statement := range d.hourStatements() {
			if _, err := tx.ExecContext(ctx, statement, d.instant(hour), d.instant(hour.Add(time.Hour))); err != nil {
				return err
			}
		}
		for _, statement := range d.dayStatements() {
			if _, err := tx.ExecContext(ctx, statement, d.instant(hour), d.instant(day), d.instant(day.AddDate(0, 0, 1))); err != nil {
				return err
			}
		}
		var seen any // NULL while the hour is not over
		if end := hour.Add(time.Hour); !end.After(now) {
			seen = d.instant(end)
		}
		if _, err := tx.ExecContext(ctx, d.text(quotaUse), d.instant(hour), d.instant(hour.Add(time.Hour)), seen); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, d.text("DELETE FROM usage_taken WHERE hour_start = $1"), d.instant(hour))
		return err
	})
}
