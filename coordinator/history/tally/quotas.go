package tally

// quotaUse writes the use of the quotas that are in force at the end of the hour $1..$2,
// for the tenants and slots that are computed: the peak of the hour, and the use at its
// end, or as far as slices reach in an hour that is not over ({seen} is NULL then). A
// quota of a whole tenant has the empty namespace. An hour without use has no row, and
// neither has a quota with scopes: the slices do not tell which work it counts.
const quotaUse = `WITH part AS (
		SELECT s.tenant_id, s.namespace, s.slot_name, s.from_at, s.to_at, s.requested FROM usage_slices s
		WHERE s.from_at >= $1 AND s.from_at < $2 AND s.to_at > s.from_at AND s.reverted = 0
			AND (s.tenant_id, s.slot_name) IN (SELECT DISTINCT tenant_id, slot_name FROM usage_taken WHERE hour_start = $1)),
	held AS (
		SELECT tenant_id, namespace, slot_name, from_at, to_at, requested FROM part WHERE namespace <> ''
		UNION ALL SELECT tenant_id, '', slot_name, from_at, to_at, requested FROM part),
	edge AS (
		SELECT tenant_id, namespace, slot_name, from_at AS at, requested AS change FROM held
		UNION ALL SELECT tenant_id, namespace, slot_name, to_at, -requested FROM held),
	step AS (
		SELECT tenant_id, namespace, slot_name, at, sum(sum(change)) OVER (PARTITION BY tenant_id, namespace, slot_name ORDER BY at) AS level
		FROM edge GROUP BY tenant_id, namespace, slot_name, at),
	peak AS (
		SELECT tenant_id, namespace, slot_name, at, level, row_number() OVER (PARTITION BY tenant_id, namespace, slot_name ORDER BY level DESC, at) AS place
		FROM step),
	last AS (
		SELECT tenant_id, namespace, slot_name, sum(requested) AS used FROM held
		WHERE to_at >= coalesce({seen}, (SELECT max(to_at) FROM part)) GROUP BY tenant_id, namespace, slot_name)
	INSERT INTO quota_usage_history (tenant_id, namespace, quota_name, resource_type, recorded_at, usage_value, peak_usage, peak_usage_at, hard_limit, utilization_pct)
	SELECT q.tenant_id, q.namespace, q.quota_name, q.resource_type, {to}, coalesce(l.used, 0), p.level, p.at, q.hard_limit,
		CASE WHEN q.hard_limit > 0 THEN 100.0 * coalesce(l.used, 0) / q.hard_limit END
	FROM resource_quotas q
	JOIN peak p ON p.place = 1 AND p.tenant_id = q.tenant_id AND p.namespace = q.namespace AND p.slot_name = q.resource_type
	LEFT JOIN last l ON l.tenant_id = q.tenant_id AND l.namespace = q.namespace AND l.slot_name = q.resource_type
	WHERE q.reverted = 0 AND q.scoped = {false} AND q.from_at < {to} AND (q.to_at IS NULL OR q.to_at >= {to})
	ON CONFLICT (tenant_id, namespace, quota_name, resource_type, recorded_at) DO UPDATE SET usage_value = excluded.usage_value, peak_usage = excluded.peak_usage,
		peak_usage_at = excluded.peak_usage_at, hard_limit = excluded.hard_limit, utilization_pct = excluded.utilization_pct`
