package warehouse

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// stored is a row that was read: a value of each column by its name.
type stored map[string]any

// scan reads the rows of a table that count and meet a condition, ordered by key.
func (w *Warehouse) scan(ctx context.Context, q queryer, t *table, where string, args ...any) ([]stored, error) {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = "c." + c.name
		if c.kind == amount || c.kind == indexed {
			names[i] = "CAST(c." + c.name + " AS TEXT)"
		}
	}
	if !t.unreverted {
		where = "c.reverted = 0 AND (" + where + ")"
	}
	found, err := q.QueryContext(ctx, w.dialect.sql(fmt.Sprintf("SELECT %s FROM %s c WHERE %s ORDER BY %s", strings.Join(names, ", "), t.name, where, t.conflictOf("c."))), args...)
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.name, err)
	}
	defer found.Close()
	var list []stored
	for found.Next() {
		row, err := w.scanRow(found, t)
		if err != nil {
			return nil, fmt.Errorf("read table %s: %w", t.name, err)
		}
		list = append(list, row)
	}
	return list, found.Err()
}

func (w *Warehouse) scanRow(found *sql.Rows, t *table) (stored, error) {
	targets := make([]any, len(t.columns))
	for i, c := range t.columns {
		switch c.kind {
		case text, optional, amount, document, indexed:
			targets[i] = new(sql.NullString)
		case integer, count:
			targets[i] = new(sql.NullInt64)
		case boolean:
			targets[i] = new(sql.NullBool)
		case real:
			targets[i] = new(sql.NullFloat64)
		case instant:
			targets[i] = new(sql.NullTime)
			if w.dialect == SQLite {
				targets[i] = new(sql.NullInt64)
			}
		}
	}
	if err := found.Scan(targets...); err != nil {
		return nil, err
	}
	row := make(stored, len(targets))
	for i, c := range t.columns {
		switch v := targets[i].(type) {
		case *sql.NullString:
			row[c.name] = *v
		case *sql.NullInt64:
			row[c.name] = *v
			if c.kind == instant {
				at := sql.NullTime{Valid: v.Valid}
				if v.Valid {
					at.Time = time.UnixMilli(v.Int64)
				}
				row[c.name] = at
			}
		case *sql.NullBool:
			row[c.name] = *v
		case *sql.NullFloat64:
			row[c.name] = *v
		case *sql.NullTime:
			row[c.name] = *v
		}
	}
	return row, nil
}

func (r stored) text(column string) string { return r[column].(sql.NullString).String }

func (r stored) integer(column string) int64 { return r[column].(sql.NullInt64).Int64 }

// count is nil where the column is NULL.
func (r stored) count(column string) *int64 {
	if n := r[column].(sql.NullInt64); n.Valid {
		return &n.Int64
	}
	return nil
}

func (r stored) boolean(column string) bool { return r[column].(sql.NullBool).Bool }

func (r stored) revision() resource.Revision { return resource.Revision(r.integer("resource_version")) }

// instant is the zero Time where the column is NULL, or where a key had none.
func (r stored) instant(column string) time.Time {
	at := r[column].(sql.NullTime)
	if !at.Valid || at.Time.Equal(firstInstant) {
		return time.Time{}
	}
	return at.Time.UTC()
}

func (r stored) document(column string) []byte {
	if d := r[column].(sql.NullString); d.Valid {
		return []byte(d.String)
	}
	return nil
}

// amount is an amount in base units, scale of which are one unit; known is false for
// NULL. PostgreSQL has units, SQLite base units.
func (w *Warehouse) amount(r stored, column string, scale int64) (base int64, known bool, err error) {
	digits := r[column].(sql.NullString)
	if !digits.Valid {
		return 0, false, nil
	}
	var n big.Int
	behind, err := parseDecimal(digits.String, &n)
	if err != nil {
		return 0, false, fmt.Errorf("column %s: %w", column, err)
	}
	if w.dialect == Postgres {
		n.Mul(&n, big.NewInt(scale))
	}
	n.Quo(&n, powerOfTen(behind))
	if !n.IsInt64() {
		return 0, false, fmt.Errorf("column %s: %s: want an amount of 64 bits", column, digits.String)
	}
	return n.Int64(), true, nil
}

// conflictOf are the columns of the primary key behind a prefix.
func (t *table) conflictOf(prefix string) string {
	return prefix + strings.ReplaceAll(t.conflict(), ", ", ", "+prefix)
}
