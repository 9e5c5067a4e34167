package warehouse

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// insertSQLite writes one row.
func (t *table) insertSQLite(repair bool) string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ")
	return fmt.Sprintf("INSERT INTO %s AS t (%s) VALUES (%s) %s", t.name, strings.Join(names, ", "), marks, t.resolution(SQLite, repair))
}

func (t *transaction) putSQLite(ctx context.Context, r *rows, m mode, out *outcome) error {
	statement, err := t.statement(ctx, r.table)
	if err != nil {
		return err
	}
	args := make([]any, len(r.columns))
	for _, row := range r.rows {
		for i, c := range r.columns {
			args[i] = valueSQLite(row[i], c.kind)
		}
		result, err := statement.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		if m != reporting {
			continue
		}
		if n, err := result.RowsAffected(); err != nil {
			return err
		} else if n > 0 {
			key := row[0].(string)
			out.written[key] = true
			out.changed = append(out.changed, key) // SQLite does not say which rows were new
		}
	}
	return nil
}

// statement is the insertion into a table, prepared once a transaction.
func (t *transaction) statement(ctx context.Context, to *table) (*sql.Stmt, error) {
	if s := t.prepared[to]; s != nil {
		return s, nil
	}
	s, err := t.PrepareContext(ctx, to.insertSQLite(t.repair))
	if err == nil {
		t.prepared[to] = s
	}
	return s, err
}

func valueSQLite(v any, k kind) any {
	switch k {
	case optional:
		if v == "" {
			return nil
		}
	case boolean:
		if v.(bool) {
			return int64(1)
		}
		return int64(0)
	case count:
		if n := v.(*int64); n != nil {
			return *n
		}
		return nil
	case real:
		if n := v.(*float64); n != nil {
			return *n
		}
		return nil
	case instant:
		if at := v.(time.Time); !at.IsZero() {
			return at.UnixMilli()
		}
		return nil
	case amount:
		if q := v.(quantity); !q.none {
			return q.base
		}
		return nil
	case document, indexed:
		if raw := v.([]byte); raw != nil {
			return string(raw)
		}
		return nil
	}
	return v
}

// removeSQLite deletes the current rows of parents that are not among r.
func (t *transaction) removeSQLite(ctx context.Context, r *rows, parents []string) error {
	elements := make(map[string][]string, len(parents))
	for _, parent := range parents {
		elements[parent] = []string{} // null would be an element
	}
	for _, row := range r.rows {
		key := row[0].(string)
		elements[key] = append(elements[key], r.elementOf(row))
	}
	statement, err := t.PrepareContext(ctx, fmt.Sprintf("DELETE FROM %s AS c WHERE c.%s = ? AND c.reverted = 0 AND %s NOT IN (SELECT value FROM json_each(?))",
		r.name, r.columns[0].name, r.element))
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, parent := range parents {
		kept, _ := json.Marshal(elements[parent]) // texts alone
		if _, err := statement.ExecContext(ctx, parent, string(kept)); err != nil {
			return err
		}
	}
	return nil
}
