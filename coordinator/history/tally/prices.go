package tally

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/warehouse"
)

// SetPrices makes the list the one by which hours are priced, and prices the stored
// hours again from their integrals, from the first hour at which the lists differ. It
// does nothing where the list is the stored one.
func SetPrices(ctx context.Context, w *warehouse.Warehouse, prices usage.Prices) error {
	d := dialectOf(w.Dialect())
	ctx, cancel := context.WithTimeout(ctx, hourTimeout)
	defer cancel()
	err := within(ctx, w, func(tx *sql.Tx) error {
		stored, err := storedPrices(ctx, tx, d)
		if err != nil {
			return err
		}
		from, differ := firstDifference(stored, rowsOf(d, prices))
		if !differ {
			return nil
		}
		if d.unbounded != "" {
			if _, err := tx.ExecContext(ctx, d.unbounded); err != nil {
				return err
			}
		}
		if err := replacePrices(ctx, tx, d, rowsOf(d, prices)); err != nil {
			return err
		}
		for _, statement := range repricing {
			if _, err := tx.ExecContext(ctx, d.text(statement), d.instant(from)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("usage: set the price list: %w", err)
	}
	return nil
}

// priceRow is a price in the words of the table: decimal texts of units in PostgreSQL,
// of base units and millionths in SQLite.
type priceRow struct {
	slot, model string
	from        time.Time
	per, price  string
	currency    string
}

func rowsOf(d dialect, prices usage.Prices) []priceRow {
	list := prices.List()
	rows := make([]priceRow, len(list))
	for i, p := range list {
		rows[i] = priceRow{string(p.Slot), p.Model, p.From.UTC(), fmt.Sprint(p.Per), fmt.Sprint(int64(p.Hour)), prices.Currency}
		if d.postgres {
			rows[i].per = new(big.Rat).SetFrac64(p.Per, p.Slot.Scale()).FloatString(6)
			rows[i].price = new(big.Rat).SetFrac64(int64(p.Hour), 1_000_000).FloatString(6)
		}
	}
	return rows
}

func storedPrices(ctx context.Context, tx *sql.Tx, d dialect) ([]priceRow, error) {
	rows, err := tx.QueryContext(ctx, "SELECT slot_name, gpu_model, from_at, CAST(per_amount AS TEXT), CAST(price AS TEXT), currency FROM usage_prices")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []priceRow
	for rows.Next() {
		from, scan := d.scan()
		var r priceRow
		if err := rows.Scan(&r.slot, &r.model, scan, &r.per, &r.price, &r.currency); err != nil {
			return nil, err
		}
		r.from = from()
		all = append(all, r)
	}
	return all, rows.Err()
}

// firstDifference is the first hour at which two lists differ.
func firstDifference(a, b []priceRow) (from time.Time, differ bool) {
	for _, lists := range [][2][]priceRow{{a, b}, {b, a}} {
		for _, row := range lists[0] {
			if !slices.Contains(lists[1], row) && (!differ || row.from.Before(from)) {
				from, differ = row.from, true
			}
		}
	}
	return from, differ
}

func replacePrices(ctx context.Context, tx *sql.Tx, d dialect, rows []priceRow) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM usage_prices"); err != nil {
		return err
	}
	statement := "INSERT INTO usage_prices (slot_name, gpu_model, from_at, per_amount, price, currency) VALUES ($1, $2, $3, CAST($4 AS {amount}), CAST($5 AS {amount}), $6)"
	for _, r := range rows {
		if _, err := tx.ExecContext(ctx, d.text(statement), r.slot, r.model, d.instant(r.from), r.per, r.price, r.currency); err != nil {
			return err
		}
	}
	return nil
}

// repricing computes costs from the integrals of hours at and behind $1, and the days
// from the hours. A day whose hours are gone keeps its cost.
var repricing = []string{
	`UPDATE usage_hourly AS h SET cost_units = coalesce((SELECT {cost:hourly} FROM usage_prices p
		WHERE p.slot_name = h.slot_name AND p.gpu_model IN (h.gpu_model, '') AND p.from_at <= h.hour_start
		ORDER BY CASE WHEN p.gpu_model = '' THEN 1 ELSE 0 END, p.from_at DESC LIMIT 1), 0)
	WHERE h.hour_start >= $1`,
	`UPDATE usage_daily AS d SET cost_units = coalesce((SELECT sum(h.cost_units) FROM usage_hourly h
		WHERE h.tenant_id = d.tenant_id AND h.namespace = d.namespace AND h.slot_name = d.slot_name AND h.gpu_model = d.gpu_model
			AND h.hour_start >= d.day_start AND h.hour_start < d.day_start + {aday}), d.cost_units)
	WHERE d.day_start + {aday} > $1`,
}
