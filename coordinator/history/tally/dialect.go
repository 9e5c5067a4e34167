package tally

import (
	"regexp"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/history/warehouse"
)

// dialect is what the statements of the two databases differ in. Amounts are units in
// PostgreSQL and base units in SQLite; durations are seconds there and milliseconds
// here, so that integrals are units times seconds, or base units times milliseconds as
// decimal text.
type dialect struct {
	postgres bool
	// lockPosition keeps the writer out until the end of the transaction. In SQLite the
	// transaction itself does (_txlock=immediate).
	lockPosition string
	// unbounded lifts the time-out of statements for one transaction.
	unbounded string
	words     *strings.Replacer
}

func dialectOf(of warehouse.Dialect) dialect {
	if of == warehouse.Postgres {
		return dialect{
			postgres:     true,
			lockPosition: "SELECT 1 FROM history_position WHERE id = 1 FOR UPDATE",
			unbounded:    "SET LOCAL statement_timeout = 0",
			words: strings.NewReplacer(
				"{seen}", "$3::timestamptz", "{from}", "$1::timestamptz", "{to}", "$2::timestamptz", "{day}", "$2::timestamptz",
				"{duration}", "extract(epoch FROM s.to_at - s.from_at)",
				"{ms}", "(extract(epoch FROM next - at) * 1000)::bigint",
				"{rate}", "div(s.measured * (SELECT t.scale FROM resource_slot_types t WHERE t.slot_name = s.slot_name), extract(epoch FROM s.to_at - s.from_at)) / (SELECT t.scale FROM resource_slot_types t WHERE t.slot_name = s.slot_name)",
				"{false}", "false", "{amount}", "numeric", "{aday}", "interval '1 day'",
				"{cost:hourly}", "least(div(20000 * h.total_allocated * p.price + 3600 * p.per_amount, 7200 * p.per_amount) / 10000, 99999999.9999)",
				"{average:hour}", "round(s.allocated / 3600, 6)",
				"{average:day}", "round(s.allocated / 86400, 6)",
				"{utilization}", "CASE WHEN s.measured_of > 0 THEN least(div(20000 * s.measured + s.measured_of, 2 * s.measured_of) / 100, 9999999999.99) END",
				"{waste}", "CASE WHEN s.measured_of > 0 THEN greatest(0, 100 - div(20000 * s.measured + s.measured_of, 2 * s.measured_of) / 100) END",
				"{cost}", "CASE WHEN p.price IS NOT NULL THEN least(div(20000 * s.allocated * p.price + 3600 * p.per_amount, 7200 * p.per_amount) / 10000, 99999999.9999) END",
			),
		}
	}
	return dialect{
		lockPosition: "SELECT 1",
		words: strings.NewReplacer(
			"{seen}", "?3", "{from}", "?1", "{to}", "?2", "{day}", "?2",
			"{duration}", "(s.to_at - s.from_at)",
			"{ms}", "next - at",
			"{rate}", "s.measured / (s.to_at - s.from_at)",
			"{false}", "0", "{amount}", "INTEGER", "{aday}", "86400000",
			"{cost:hourly}", "min(CAST(decimal_div(decimal_mul(h.total_allocated, p.price), decimal_mul(360000000, p.per_amount), 0) AS INTEGER), 999999999999)",
			"{average:hour}", "CAST(decimal_div(s.allocated, 3600000, 0) AS INTEGER)",
			"{average:day}", "CAST(decimal_div(s.allocated, 86400000, 0) AS INTEGER)",
			"{utilization}", "CAST(decimal_div(decimal_mul(s.measured, 100), s.measured_of, 2) AS REAL)",
			"{waste}", "max(0, 100 - CAST(decimal_div(decimal_mul(s.measured, 100), s.measured_of, 2) AS REAL))",
			"{cost}", "min(CAST(decimal_div(decimal_mul(s.allocated, p.price), decimal_mul(360000000, p.per_amount), 0) AS INTEGER), 999999999999)",
		),
	}
}

// numbered are the parameters as PostgreSQL writes them.
var numbered = regexp.MustCompile(`\$(\d)`)

// integrals are {integral:x}, the sum of an amount times its duration, and totals
// {total:x}, a sum of integrals.
var (
	integrals = regexp.MustCompile(`\{integral:([^}]+)\}`)
	totals    = regexp.MustCompile(`\{total:([^}]+)\}`)
)

// text is a statement in the database's words.
func (d dialect) text(statement string) string {
	if d.postgres {
		statement = integrals.ReplaceAllString(statement, "coalesce(sum(${1} * {duration}), 0)")
		return d.words.Replace(totals.ReplaceAllString(statement, "coalesce(sum($1), 0)"))
	}
	statement = integrals.ReplaceAllString(statement, "decimal_sum(decimal_mul($1, {duration}))")
	statement = totals.ReplaceAllString(statement, "decimal_sum($1)")
	return numbered.ReplaceAllString(d.words.Replace(statement), "?$1")
}

// instant is an instant as a parameter.
func (d dialect) instant(t time.Time) any {
	if d.postgres {
		return t.UTC()
	}
	return t.UnixMilli()
}

// scan is where a column of instants is read into, and the instant then.
func (d dialect) scan() (instant func() time.Time, into any) {
	if d.postgres {
		t := new(time.Time)
		return func() time.Time { return t.UTC() }, t
	}
	ms := new(int64)
	return func() time.Time { return time.UnixMilli(*ms).UTC() }, ms
}
