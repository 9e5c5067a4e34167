// Package sound decides by SQL whether rows of the history contradict each other: a device
// held twice at the same instant, amounts above the capacity of a node, slices and sums other
// than those of the grants. The package history/projector compares with the store, and repairs.
package sound

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/history/warehouse"
)

// Fault is a contradiction in the rows.
type Fault struct {
	Check  string // device, capacity, slice, empty or hour
	Key    string // of the row, or of the first of several
	Detail string // the amounts, with what they should be
}

// most bounds the faults of a check.
const most = 100

// Check returns the contradictions in the rows of grants that ended after an instant, or have
// not ended, at most 100 of each kind. Each question sees the rows of a single moment.
func Check(ctx context.Context, w *warehouse.Warehouse, since time.Time) ([]Fault, error) {
	words, instant := ofSQLite, any(since.UnixMilli())
	if w.Dialect() == warehouse.Postgres {
		words, instant = ofPostgres, since.UTC()
	}
	var faults []Fault
	for _, check := range checks {
		statement := words.Replace(check.statement)
		if w.Dialect() == warehouse.SQLite {
			statement = numbered.ReplaceAllString(statement, "?$1")
		}
		rows, err := w.SQL().QueryContext(ctx, statement, instant, most)
		if err != nil {
			return nil, fmt.Errorf("check each %s of the history: %w", check.name, err)
		}
		for rows.Next() {
			f := Fault{Check: check.name}
			if err := rows.Scan(&f.Key, &f.Detail); err != nil {
				rows.Close()
				return nil, fmt.Errorf("check each %s of the history: %w", check.name, err)
			}
			faults = append(faults, f)
		}
		if err := rows.Close(); err != nil {
			return nil, fmt.Errorf("check each %s of the history: %w", check.name, err)
		}
	}
	return faults, nil
}

var numbered = regexp.MustCompile(`\$(\d)`)

var (
	ofPostgres = strings.NewReplacer(
		"{never}", "'infinity'::timestamptz", "{least}", "least", "{whole}", "1", "{since}", "$1::timestamptz", "{ms}", "extract(epoch FROM s.to_at - s.from_at) * 1000",
		"{devices}", "jsonb_array_elements_text(CASE WHEN jsonb_typeof(m.devices) = 'array' THEN m.devices ELSE '[]' END) AS d (value)",
		"{gpus}", "(SELECT count(*) FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(m.devices) = 'array' THEN m.devices ELSE '[]' END) AS o (value) WHERE o.value NOT LIKE 'MIG-%')",
		"{between}", "extract(epoch FROM max(s.to_at) - min(s.from_at)) * 1000", "{sum}", "sum(s.allocated * extract(epoch FROM s.to_at - s.from_at))", "{total}", "h.total_allocated",
		"{hour}", "date_trunc('hour', s.from_at, 'UTC')",
	)
	ofSQLite = strings.NewReplacer(
		"{never}", "9000000000000000", "{least}", "min", "{whole}", "1000", "{since}", "$1", "{ms}", "s.to_at - s.from_at",
		"{devices}", "json_each(m.devices) AS d",
		"{gpus}", "(SELECT count(*) FROM json_each(m.devices) AS o WHERE o.value NOT LIKE 'MIG-%')",
		"{between}", "max(s.to_at) - min(s.from_at)", "{sum}", "sum(s.allocated * (s.to_at - s.from_at))", "{total}", "CAST(h.total_allocated AS INTEGER)",
		"{hour}", "s.from_at - s.from_at % 3600000",
	)
)

// held are the members of grants with the times for which they held their parts.
const held = `held AS (
	SELECT g.tx_id, g.committed_at, m.member, m.node_id, m.devices, g.committed_at AS from_at, {least}(coalesce(m.ended_at, {never}), coalesce(g.ended_at, {never})) AS to_at
	FROM grants g JOIN grant_members m ON m.tx_id = g.tx_id AND m.reverted = 0
	WHERE g.reverted = 0 AND g.committed_at IS NOT NULL AND (g.ended_at IS NULL OR g.ended_at > {since}))`

// levels add up the parts at each instant at which a part begins or ends.
const levels = `edge AS (
	SELECT place, from_at AS at, part AS change FROM parts WHERE to_at > from_at
	UNION ALL SELECT place, to_at, -part FROM parts WHERE to_at > from_at),
level AS (
	SELECT place, at, sum(sum(change)) OVER (PARTITION BY place ORDER BY at) AS amount FROM edge GROUP BY place, at)`

var checks = []struct{ name, statement string }{
	{"device", `WITH ` + held + `, parts AS (
		SELECT m.node_id || ' ' || d.value AS place, m.from_at, m.to_at, CASE WHEN d.value LIKE 'MIG-%' THEN {whole} ELSE r.used / {gpus} END AS part
		FROM held m CROSS JOIN {devices}
		JOIN grant_resources r ON r.tx_id = m.tx_id AND r.member = m.member AND r.reverted = 0 AND r.slot_name = 'nvidia.com/gpu' AND r.used > 0
		UNION ALL
		SELECT m.node_id || ' ' || d.value, m.from_at, m.to_at, {whole}
		FROM held m CROSS JOIN {devices}
		WHERE d.value LIKE 'MIG-%' AND NOT EXISTS (SELECT 1 FROM grant_resources r WHERE r.tx_id = m.tx_id AND r.member = m.member AND r.reverted = 0 AND r.slot_name = 'nvidia.com/gpu' AND r.used > 0)
	), ` + levels + `
	SELECT place, 'held ' || CAST(amount AS TEXT) || ' at ' || CAST(at AS TEXT) || ', want at most ' || CAST({whole} AS TEXT) FROM level WHERE amount > {whole} ORDER BY at LIMIT $2`},

	// The capacity of a node is known since the last change of the node: grants from before
	// leave less room.
	{"capacity", `WITH ` + held + `, parts AS (
		SELECT m.node_id || ' ' || r.slot_name AS place, m.from_at, m.to_at, r.used AS part
		FROM held m JOIN nodes n ON n.node_id = m.node_id AND n.reverted = 0 AND n.updated_at <= m.committed_at
		JOIN grant_resources r ON r.tx_id = m.tx_id AND r.member = m.member AND r.reverted = 0 AND r.used > 0
	), ` + levels + `
	SELECT l.place, 'holds ' || CAST(max(l.amount) AS TEXT) || ', has ' || CAST(max(c.capacity) AS TEXT)
	FROM level l JOIN node_resource_capacity c ON c.node_id || ' ' || c.slot_name = l.place AND c.reverted = 0
	WHERE l.amount > c.capacity GROUP BY l.place ORDER BY l.place LIMIT $2`},

	{"slice", `WITH ` + held + `
	SELECT s.tx_id || ' member ' || CAST(s.member AS TEXT) || ' ' || s.slot_name, 'slices of ' || CAST(sum({ms}) AS TEXT) || ' ms within ' || CAST({between} AS TEXT)
		|| ' ms from ' || CAST(min(s.from_at) AS TEXT) || ' to ' || CAST(max(s.to_at) AS TEXT) || ', held from ' || CAST(min(m.from_at) AS TEXT) || ' to ' || CAST(min(m.to_at) AS TEXT)
	FROM held m JOIN usage_slices s ON s.tx_id = m.tx_id AND s.member = m.member AND s.reverted = 0
	WHERE m.committed_at > {since}
	GROUP BY s.tx_id, s.member, s.slot_name
	HAVING sum({ms}) <> {between} OR min(s.from_at) <> min(m.from_at) OR max(s.to_at) > min(m.to_at) OR min(m.to_at) < {never} AND max(s.to_at) <> min(m.to_at)
	ORDER BY 1 LIMIT $2`},

	{"empty", `SELECT tx_id || ' member ' || CAST(member AS TEXT) || ' ' || slot_name, 'a slice from ' || CAST(from_at AS TEXT) || ' to ' || CAST(to_at AS TEXT)
	FROM usage_slices WHERE to_at <= from_at AND from_at >= {since} ORDER BY 1 LIMIT $2`},

	// Sums of processors and devices; a sum with marks is computed anew later.
	{"hour", `WITH sums AS (
		SELECT s.tenant_id, s.namespace, s.slot_name, s.gpu_model, {hour} AS hour_start, {sum} AS total FROM usage_slices s
		WHERE s.reverted = 0 AND s.from_at >= {since} AND s.slot_name IN ('cpu', 'nvidia.com/gpu')
		GROUP BY 1, 2, 3, 4, 5)
	SELECT s.tenant_id || '/' || s.namespace || ' ' || s.slot_name || ' ' || s.gpu_model || ' ' || CAST(s.hour_start AS TEXT), 'the sum is ' || CAST({total} AS TEXT) || ', the slices have ' || CAST(s.total AS TEXT)
	FROM sums s JOIN usage_hourly h ON h.tenant_id = s.tenant_id AND h.namespace = s.namespace AND h.slot_name = s.slot_name AND h.gpu_model = s.gpu_model AND h.hour_start = s.hour_start
	WHERE {total} <> s.total AND s.hour_start > {since}
		AND NOT EXISTS (SELECT 1 FROM usage_dirty d WHERE d.hour_start = s.hour_start AND d.tenant_id = s.tenant_id AND d.namespace = s.namespace AND d.slot_name = s.slot_name AND d.gpu_model = s.gpu_model)
		AND NOT EXISTS (SELECT 1 FROM usage_taken d WHERE d.hour_start = s.hour_start AND d.tenant_id = s.tenant_id AND d.namespace = s.namespace AND d.slot_name = s.slot_name AND d.gpu_model = s.gpu_model)
	ORDER BY 1 LIMIT $2`},
}
