package warehouse

import (
	"context"
	"database/sql"
	"fmt"
)

// chunk is the most rows of one statement. It bounds the memory of a statement on
// both sides.
const chunk = 10_000

// transaction writes rows within one SQL transaction.
type transaction struct {
	*sql.Tx
	dialect  Dialect
	prepared map[*table]*sql.Stmt // SQLite's
	repair   bool                 // history.Batch.Repair
}

// outcome says what became of the rows of a parent table, by their first column.
type outcome struct {
	// written are the keys of rows that are stored now; changed are those of them that
	// replaced a row.
	written map[string]bool
	changed []string
}

// mode is a way to write rows.
type mode int

const (
	plainly   mode = iota
	reporting      // and say which rows are stored now
	sparing        // and leave out rows that are stored already as they are
)

// put writes rows whose keys are different.
func (t *transaction) put(ctx context.Context, r *rows) error {
	_, err := t.write(ctx, r, plainly)
	return err
}

// putParents writes rows of a table that others belong to.
func (t *transaction) putParents(ctx context.Context, r *rows) (outcome, error) {
	return t.write(ctx, r, reporting)
}

func (t *transaction) write(ctx context.Context, r *rows, m mode) (outcome, error) {
	out := outcome{written: make(map[string]bool, len(r.rows))}
	for from := 0; from < len(r.rows); from += chunk {
		part := &rows{r.table, r.rows[from:min(from+chunk, len(r.rows))]}
		var err error
		if t.dialect == Postgres {
			err = t.putPostgres(ctx, part, m, &out)
		} else {
			err = t.putSQLite(ctx, part, m, &out)
		}
		if err != nil {
			return out, fmt.Errorf("write %d rows of table %s: %w", len(part.rows), r.name, err)
		}
	}
	return out, nil
}

// replaceChildren writes the rows of the parents that are stored now, and deletes the
// other rows that those parents had. Most rows of a parent that has changed are as
// before: PostgreSQL would lock each of them for nothing.
func (t *transaction) replaceChildren(ctx context.Context, r *rows, parents outcome) error {
	fresh, again := r, &rows{table: r.table}
	if len(parents.changed) > 0 {
		fresh = &rows{table: r.table}
		changed := make(map[string]bool, len(parents.changed))
		for _, key := range parents.changed {
			changed[key] = true
		}
		for _, row := range r.rows {
			if changed[row[0].(string)] {
				again.rows = append(again.rows, row)
			} else {
				fresh.rows = append(fresh.rows, row)
			}
		}
		remove := t.removePostgres
		if t.dialect == SQLite {
			remove = t.removeSQLite
		}
		if err := remove(ctx, again, parents.changed); err != nil {
			return fmt.Errorf("delete the former rows of table %s: %w", r.name, err)
		}
	}
	if _, err := t.write(ctx, again, sparing); err != nil {
		return err
	}
	return t.put(ctx, fresh)
}
