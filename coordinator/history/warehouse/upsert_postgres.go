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
func (t *table) insertPostgres(m mode, repair bool) string {
	var names, arrays, values, same []string
	for i, c := range t.columns {
		element, cast := c.kind.types()
		names = append(names, c.name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, element))
		values = append(values, "u."+c.name+cast)
		equals := " IS NOT DISTINCT FROM "
		if i < t.keys {
			equals = " = "
		}
		same = append(same, "s."+c.name+equals+"u."+c.name+cast)
	}
	list := strings.Join(names, ", ")
	where := ""
	if m == sparing {
		where = fmt.Sprintf("WHERE NOT EXISTS (SELECT 1 FROM %s s WHERE s.reverted = 0 AND %s) ", t.name, strings.Join(same, " AND "))
	}
	text := fmt.Sprintf("INSERT INTO %s AS t (%s) SELECT %s FROM unnest(%s) AS u (%s) %s%s",
		t.name, list, strings.Join(values, ", "), strings.Join(arrays, ", "), list, where, t.resolution(Postgres, repair))
	if m == reporting {
		text += " RETURNING " + t.columns[0].name + ", xmax <> 0" // xmax is 0 in a row that is new
	}
	return text
}

func (t *transaction) putPostgres(ctx context.Context, r *rows, m mode, out *outcome) error {
	args := make([]any, len(r.columns))
	for i, c := range r.columns {
		args[i] = array(r.rows, i, c.kind)
	}
	if m != reporting {
		_, err := t.ExecContext(ctx, r.insertPostgres(m, t.repair), args...)
		return err
	}
	found, err := t.QueryContext(ctx, r.insertPostgres(m, t.repair), args...)
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

// separator stands between the elements of a parent; names and numbers do not have it.
const separator = "\x1f"

// removePostgres deletes the current rows of parents that are not among r. Each parent
// brings its elements: a join of two arrays would be planned for ten elements, row by row.
func (t *transaction) removePostgres(ctx context.Context, r *rows, parents []string) error {
	elements := make(map[string]string, len(parents))
	for _, row := range r.rows {
		key := row[0].(string)
		elements[key] += r.elementOf(row) + separator
	}
	kept := make([]string, len(parents))
	for i, parent := range parents {
		kept[i] = elements[parent]
	}
	_, err := t.ExecContext(ctx, fmt.Sprintf(`DELETE FROM %s c USING unnest($1::text[], $2::text[]) AS p (key, elements)
		WHERE c.%s = p.key AND c.reverted = 0 AND NOT %s = ANY (string_to_array(p.elements, E'\x1f'))`,
		r.name, r.columns[0].name, r.element), parents, kept)
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
