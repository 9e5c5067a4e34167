package warehouse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	texts "github.com/musterd/muster/api/text"
	"github.com/musterd/muster/resource"
)

// kind is the type of a column in Go, and decides the types in both databases.
type kind int

const (
	text     kind = iota // string; "" is a value
	optional             // string; "" is NULL
	integer              // int64
	count                // *int64; nil is NULL
	boolean              // bool
	real                 // *float64; nil is NULL
	instant              // time.Time; the zero Time is NULL
	amount               // quantity; NUMERIC in units, or INTEGER in base units
	document             // []byte of JSON; nil is NULL
	indexed              // []byte of JSON made here, JSONB in PostgreSQL
)

// rule says what a column keeps when a row is replaced.
type rule int

const (
	latest   rule = iota // the new value
	earliest             // the earlier instant of both
)

type column struct {
	name string
	kind kind
	rule rule
}

// guard says when a row replaces the stored row of the same key.
type guard int

const (
	never  guard = iota // the stored row stays
	newer               // with a greater resource_version
	always              // each time
	differ              // with another value in any column
)

// table is a table that batches write. Its key is the first columns, and reverted
// where the table has that column.
type table struct {
	name    string
	columns []column
	keys    int
	guard   guard
	// unreverted: the table has no column reverted.
	unreverted bool
	// month is the column by which PostgreSQL keeps each month in a partition.
	month string
	// parent is the table whose first column is this table's first, and element the
	// SQL expression that tells the rows of one parent apart.
	parent  *table
	element string
}

// rows are rows of one table, in the order of its columns.
type rows struct {
	*table
	rows [][]any
}

func (r *rows) add(values ...any) {
	if len(values) != len(r.columns) {
		panic(fmt.Sprintf("table %s: %d values for %d columns", r.name, len(values), len(r.columns)))
	}
	r.rows = append(r.rows, values)
}

// conflict are the columns of the primary key.
func (t *table) conflict() string {
	names := make([]string, t.keys, t.keys+1)
	for i := range names {
		names[i] = t.columns[i].name
	}
	if !t.unreverted {
		names = append(names, "reverted")
	}
	return strings.Join(names, ", ")
}

// resolution is the clause behind ON CONFLICT. repair: a row of the same revision is
// replaced too.
func (t *table) resolution(d Dialect, repair bool) string {
	if t.guard == never {
		return fmt.Sprintf("ON CONFLICT (%s) DO NOTHING", t.conflict())
	}
	var set, differs []string
	for _, c := range t.columns[t.keys:] {
		value := "excluded." + c.name
		switch {
		case c.rule == earliest && d == Postgres:
			value = fmt.Sprintf("least(t.%s, excluded.%[1]s)", c.name)
		case c.rule == earliest:
			value = fmt.Sprintf("coalesce(min(t.%s, excluded.%[1]s), t.%[1]s, excluded.%[1]s)", c.name)
		}
		set = append(set, c.name+" = "+value)
		differs = append(differs, fmt.Sprintf("t.%s IS DISTINCT FROM excluded.%[1]s", c.name))
	}
	clause := fmt.Sprintf("ON CONFLICT (%s) DO UPDATE SET %s", t.conflict(), strings.Join(set, ", "))
	switch t.guard {
	case newer:
		than := "<"
		if repair {
			than = "<="
		}
		clause += " WHERE t.resource_version " + than + " excluded.resource_version"
	case differ:
		clause += " WHERE " + strings.Join(differs, " OR ")
	}
	return clause
}

// quantity is an amount in base units, scale of which are one unit.
type quantity struct {
	base  int64
	scale int64 // 1, 1000 or 1000000
	none  bool  // NULL
}

// maxAmount is the greatest amount in units of NUMERIC(24,6).
const maxAmount = 999_999_999_999_999_999

// quantityOf is an amount of a resource. resource.Unlimited is no amount.
func quantityOf(name resource.Name, base int64) quantity {
	q := quantity{base: base, scale: name.Scale(), none: base == resource.Unlimited}
	q.base = min(q.base, maxAmount)
	return q
}

// String is the amount in units, with a point where scale needs one.
func (q quantity) String() string {
	if q.scale <= 1 {
		return fmt.Sprint(q.base)
	}
	digits := len(fmt.Sprint(q.scale)) - 1
	whole, rest, sign := q.base/q.scale, q.base%q.scale, ""
	if q.base < 0 {
		whole, rest, sign = -whole, -rest, "-"
	}
	return fmt.Sprintf("%s%d.%0*d", sign, whole, digits, rest)
}

// plain is a text that both databases take: UTF-8 without NUL.
func plain(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// plainDocument is a JSON document that both databases take; one that is not JSON
// becomes a JSON string.
func plainDocument(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	if !json.Valid(raw) {
		raw, _ = json.Marshal(plain(string(raw)))
	}
	return texts.Clean(raw, texts.Free)
}

// object is a JSON object of texts, without NUL in any of them.
func object(m map[string]string) []byte {
	if len(m) == 0 {
		return nil
	}
	clean := make(map[string]string, len(m))
	for k, v := range m {
		clean[plain(k)] = plain(v)
	}
	raw, _ := json.Marshal(clean) // texts alone
	return raw
}

// list is a JSON array of texts; nil for none.
func list[T ~string](texts []T) []byte {
	if len(texts) == 0 {
		return nil
	}
	raw, _ := json.Marshal(texts)
	return raw
}

// wholeMilliseconds cuts an instant to the precision of the history.
func wholeMilliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}
