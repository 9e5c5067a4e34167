package tally

import "strings"

// scope is what sums are kept for: each namespace and model, or a whole tenant.
type scope struct {
	levels, hourly string
	keys           []string
}

var (
	ofModels = scope{"usage_levels", "usage_hourly", []string{"tenant_id", "namespace", "slot_name", "gpu_model"}}
	// ofUse has the levels of what was used, for the rows of ofModels.
	ofUse     = scope{"usage_used_levels", "usage_hourly", ofModels.keys}
	ofTenants = scope{"usage_tenant_levels", "usage_tenant_hourly", []string{"tenant_id", "slot_name"}}
)

// columns are the key's columns, each behind the prefix.
func (s scope) columns(prefix string) string {
	return prefix + strings.Join(s.keys, ", "+prefix)
}

// taken limits rows to the keys that are computed.
func (s scope) taken() string {
	return "(" + s.columns("") + ") IN (SELECT DISTINCT " + s.columns("") + " FROM usage_taken WHERE hour_start = $1)"
}

// inScope puts the scope's names into a statement.
func (d dialect) inScope(s scope, statement string) string {
	return d.text(strings.NewReplacer("{levels}", s.levels, "{hourly}", s.hourly, "{keys}", s.columns(""), "{taken}", s.taken()).Replace(statement))
}

// hourStatements compute the sums of the hour $1..$2 for the keys that are taken.
func (d dialect) hourStatements() []string {
	return []string{
		d.inScope(ofModels, forget), d.inScope(ofModels, fillHeld), d.inScope(ofUse, forget), d.inScope(ofUse, fillUsed),
		d.inScope(ofModels, forgetHour), d.inScope(ofModels, sumOfModels),
		d.inScope(ofTenants, forget), d.inScope(ofTenants, fillHeld), d.inScope(ofTenants, forgetHour), d.inScope(ofTenants, sumOfTenants),
	}
}

// dayStatements compute the sums of the day $2..$3 for the keys of the hour $1.
func (d dialect) dayStatements() []string {
	return []string{
		d.inScope(ofModels, "DELETE FROM usage_daily WHERE day_start >= $2 AND day_start < $3 AND {taken}"),
		d.inScope(ofModels, sumOfDays),
	}
}

const (
	forget     = "DELETE FROM {levels} WHERE hour_start >= $1 AND hour_start < $2 AND {taken}"
	forgetHour = "DELETE FROM {hourly} WHERE hour_start >= $1 AND hour_start < $2 AND {taken}"

	// inHour are the slices of the hour. One of length 0 takes an earlier one back.
	inHour = `FROM usage_slices s
	WHERE s.from_at >= $1 AND s.from_at < $2 AND s.to_at > s.from_at AND s.reverted = 0 AND {taken}`

	// fill adds up the amounts at each instant at which one begins or ends, and then the
	// time for which each level was held.
	fillHeld = `WITH part AS (SELECT {keys}, s.from_at, s.to_at, s.allocated AS amount ` + inHour + `),` + fill
	// fillUsed does so with the use, which is even within a slice.
	fillUsed = `WITH part AS (SELECT {keys}, s.from_at, s.to_at, {rate} AS amount ` + inHour + ` AND s.measured IS NOT NULL),` + fill

	fill = `
	edge AS (
		SELECT {keys}, from_at AS at, amount AS change FROM part
		UNION ALL SELECT {keys}, to_at, -amount FROM part
		UNION ALL SELECT DISTINCT {keys}, {from}, 0 FROM part
		UNION ALL SELECT DISTINCT {keys}, {to}, 0 FROM part),
	step AS (
		SELECT {keys}, at, sum(sum(change)) OVER (PARTITION BY {keys} ORDER BY at) AS level,
			lead(at) OVER (PARTITION BY {keys} ORDER BY at) AS next
		FROM edge GROUP BY {keys}, at)
	INSERT INTO {levels} ({keys}, hour_start, level, ms)
	SELECT {keys}, {from}, level, sum({ms}) FROM step WHERE next > at GROUP BY {keys}, level`

	// totals are the integrals of the slices.
	sliceTotals = `SELECT {keys}, {integral:s.requested} AS requested, {integral:s.allocated} AS allocated,
		{integral:coalesce(s.limit_amount, 0)} AS limited, {total:s.measured} AS measured,
		{integral:CASE WHEN s.measured IS NOT NULL THEN s.allocated ELSE 0 END} AS measured_of ` + inHour + ` GROUP BY {keys}`

	// ranks are the least, the most and the percentiles of the levels $levels.
	rankedHour = rankedOf + `{levels}` + rankedIn
	// rankedUse are those of the use; none where nothing was measured.
	rankedUse = rankedOf + `usage_used_levels` + rankedIn

	rankedOf = `SELECT {keys}, max(level) AS most, min(level) AS least,
		min(level) FILTER (WHERE passed * 100 >= 342000000) AS p95, min(level) FILTER (WHERE passed * 100 >= 356400000) AS p99
	FROM (SELECT {keys}, level, sum(ms) OVER (PARTITION BY {keys} ORDER BY level) AS passed
		FROM `
	rankedIn = ` WHERE hour_start >= $1 AND hour_start < $2 AND {taken}) AS passing
	GROUP BY {keys}`

	// price is the price of the row's model, else of its slot, that holds at the instant.
	price = `LEFT JOIN usage_prices p ON p.slot_name = s.slot_name AND (p.gpu_model, p.from_at) = (
		SELECT n.gpu_model, n.from_at FROM usage_prices n
		WHERE n.slot_name = s.slot_name AND n.gpu_model IN (s.gpu_model, '') AND n.from_at <= {at}
		ORDER BY CASE WHEN n.gpu_model = '' THEN 1 ELSE 0 END, n.from_at DESC LIMIT 1)`

	sumOfTenants = `INSERT INTO usage_tenant_hourly ({keys}, hour_start, avg_usage, max_usage, min_usage, p95_usage, p99_usage, total_allocated)
	SELECT {keys}, {from}, {average:hour}, l.most, l.least, l.p95, l.p99, s.allocated
	FROM (` + sliceTotals + `) AS s JOIN (` + rankedHour + `) AS l USING ({keys})`

	sumOfDays = `INSERT INTO usage_daily ({keys}, day_start, avg_usage, max_usage, min_usage, p95_usage, p99_usage,
		total_requested, total_allocated, total_limit, total_measured, measured_of, utilization_pct, waste_pct, cost_units, max_used, p95_used, p99_used)
	SELECT {keys}, {day}, {average:day}, l.most, l.least, l.p95, l.p99,
		s.requested, s.allocated, s.limited, s.measured, s.measured_of, {utilization}, {waste}, s.cost, u.most, u.p95, u.p99
	FROM (SELECT {keys}, {total:total_requested} AS requested, {total:total_allocated} AS allocated, {total:total_limit} AS limited,
			{total:total_measured} AS measured, {total:measured_of} AS measured_of, sum(cost_units) AS cost
		FROM usage_hourly WHERE hour_start >= $2 AND hour_start < $3 AND {taken} GROUP BY {keys}) AS s
	JOIN (` + rankedDayOf + `usage_levels` + rankedDayIn + `usage_levels` + rankedDayEnd + `) AS l USING ({keys})
	LEFT JOIN (` + rankedDayOf + `usage_used_levels` + rankedDayIn + `usage_used_levels` + rankedDayEnd + `) AS u USING ({keys})`

	// rankedDay are the ranks of a day, whose rest counts as 0.
	rankedDayOf = `SELECT {keys}, max(level) AS most, min(level) AS least,
			min(level) FILTER (WHERE passed * 100 >= 8208000000) AS p95, min(level) FILTER (WHERE passed * 100 >= 8553600000) AS p99
		FROM (SELECT {keys}, level, sum(sum(ms)) OVER (PARTITION BY {keys} ORDER BY level) AS passed
			FROM (SELECT {keys}, level, ms FROM `
	rankedDayIn = ` WHERE hour_start >= $2 AND hour_start < $3 AND {taken}
				UNION ALL SELECT {keys}, 0, 86400000 - sum(ms) FROM `
	rankedDayEnd = `
				WHERE hour_start >= $2 AND hour_start < $3 AND {taken} GROUP BY {keys} HAVING sum(ms) < 86400000) AS held
			GROUP BY {keys}, level) AS passing
		GROUP BY {keys}`
)

// sumOfModels has the cost, too: it is of the hour's price.
var sumOfModels = `INSERT INTO usage_hourly ({keys}, hour_start, avg_usage, max_usage, min_usage, p95_usage, p99_usage,
		total_requested, total_allocated, total_limit, total_measured, measured_of, utilization_pct, waste_pct, cost_units, max_used, p95_used, p99_used)
	SELECT ` + ofModels.columns("s.") + `, {from}, {average:hour}, l.most, l.least, l.p95, l.p99,
		s.requested, s.allocated, s.limited, s.measured, s.measured_of, {utilization}, {waste}, coalesce({cost}, 0), u.most, u.p95, u.p99
	FROM (` + sliceTotals + `) AS s JOIN (` + rankedHour + `) AS l USING ({keys}) LEFT JOIN (` + rankedUse + `) AS u USING ({keys})
	` + strings.ReplaceAll(price, "{at}", "{from}")
