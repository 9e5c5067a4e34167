package warehouse

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// types are the array's element and the cast from it to the column.
func (k kind) types() (element, cast string) {
	switch k {
	case integer, count:
		return "bigint", ""
	case boolean:
		return "boolean", ""
	case real:
		return "double precision", ""
	case instant:
		return "timestamptz", ""
	case amount:
		return "text", "::numeric"
	case document:
		return "text", "::json"
	case indexed:
		return "text", "::jsonb"
	default:
		return "text", ""
	}
}

// insertPostgres is one statement for any number of rows: each column is an array.
func (t *table) insertPostgres(report bool) string {
	var names, arrays, values []string
	for i, c := range t.columns {
		element, cast := c.kind.types()
		names = append(names, c.name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, element))
		values = append(values, "u."+c.name+cast)
	}
	list := strings.Join(names, ", ")
	text := fmt.Sprintf("INSERT INTO %s AS t (%s) SELECT %s FROM unnest(%s) AS u (%s) %s",
		t.name, list, strings.Join(values, ", "), strings.Join(arrays, ", "), list, t.resolution(Postgres))
	if report {
		text += " RETURNING " + t.columns[0].name + ", xmax <> 0" // xmax is 0 in a row that is new
	}
	return text
}

func (t *transaction) putPostgres(ctx context.Context, r *rows, report bool, out *outcome) error {
	args := make([]any, len(r.columns))
	for i, c := range r.columns {
		args[i] = array(r.rows, i, c.kind)
	}
	if !report {
		_, err := t.ExecContext(ctx, r.insertPostgres(false), args...)
		return err
	}
	found, err := t.QueryContext(ctx, r.insertPostgres(true), args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var key string
		var changed bool
		if err := found.Scan(&key, &changed); err != nil {
			return err
		}
		out.written[key] = true
		if changed {
			out.changed = append(out.changed, key)
		}
	}
	return found.Err()
}

// array is a column of rows as pgx writes it.
func array(rows [][]any, column int, k kind) any {
	switch k {
	case text:
		return collect(rows, column, func(v any) string { return v.(string) })
	case optional:
		return collect(rows, column, func(v any) *string { return orNull(v.(string)) })
	case integer:
		return collect(rows, column, func(v any) int64 { return v.(int64) })
	case count:
		return collect(rows, column, func(v any) *int64 { return v.(*int64) })
	case boolean:
		return collect(rows, column, func(v any) bool { return v.(bool) })
	case real:
		return collect(rows, column, func(v any) *float64 { return v.(*float64) })
	case instant:
		return collect(rows, column, func(v any) *time.Time {
			at := wholeMilliseconds(v.(time.Time))
			if at.IsZero() {
				return nil
			}
			return &at
		})
	case amount:
		return collect(rows, column, func(v any) *string {
			q := v.(quantity)
			if q.none {
				return nil
			}
			digits := q.String()
			return &digits
		})
	default: // document, indexed
		return collect(rows, column, func(v any) *string { return orNull(string(v.([]byte))) })
	}
}

func collect[T any](rows [][]any, column int, of func(any) T) []T {
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = of(row[column])
	}
	return values
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// removePostgres deletes the current rows of parents that are not among r.
func (t *transaction) removePostgres(ctx context.Context, r *rows, parents []string) error {
	keys, elements := make([]string, len(r.rows)), make([]string, len(r.rows))
	for i, row := range r.rows {
		keys[i], elements[i] = row[0].(string), r.elementOf(row)
	}
	key := r.columns[0].name
	_, err := t.ExecContext(ctx, fmt.Sprintf(`DELETE FROM %s c USING unnest($1::text[]) AS p (key)
		WHERE c.%s = p.key AND c.reverted = 0 AND NOT EXISTS (
			SELECT 1 FROM unnest($2::text[], $3::text[]) AS n (key, element) WHERE n.key = c.%[2]s AND n.element = %[3]s)`,
		r.name, key, r.element), parents, keys, elements)
	return err
}

// elementOf is the value of the table's expression element in a row.
func (t *table) elementOf(row []any) string {
	parts := make([]string, 0, 2)
	for _, value := range row[1:t.keys] {
		parts = append(parts, fmt.Sprint(value))
	}
	return strings.Join(parts, "/")
}
