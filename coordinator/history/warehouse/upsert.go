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
}

// outcome says what became of the rows of a parent table, by their first column.
type outcome struct {
	// written are the keys of rows that are stored now; changed are those of them that
	// replaced a row.
	written map[string]bool
	changed []string
}

// put writes rows whose keys are different.
func (t *transaction) put(ctx context.Context, r *rows) error {
	_, err := t.write(ctx, r, false)
	return err
}

// putParents writes rows of a table that others belong to.
func (t *transaction) putParents(ctx context.Context, r *rows) (outcome, error) {
	return t.write(ctx, r, true)
}

func (t *transaction) write(ctx context.Context, r *rows, report bool) (outcome, error) {
	out := outcome{written: make(map[string]bool, len(r.rows))}
	for from := 0; from < len(r.rows); from += chunk {
		part := &rows{r.table, r.rows[from:min(from+chunk, len(r.rows))]}
		var err error
		if t.dialect == Postgres {
			err = t.putPostgres(ctx, part, report, &out)
		} else {
			err = t.putSQLite(ctx, part, report, &out)
		}
		if err != nil {
			return out, fmt.Errorf("write %d rows of table %s: %w", len(part.rows), r.name, err)
		}
	}
	return out, nil
}

// replaceChildren writes the rows of the parents that are stored now, and deletes the
// other rows that those parents had.
func (t *transaction) replaceChildren(ctx context.Context, r *rows, parents outcome) error {
	if len(parents.changed) > 0 {
		remove := t.removePostgres
		if t.dialect == SQLite {
			remove = t.removeSQLite
		}
		if err := remove(ctx, r, parents.changed); err != nil {
			return fmt.Errorf("delete the former rows of table %s: %w", r.name, err)
		}
	}
	return t.put(ctx, r)
}
