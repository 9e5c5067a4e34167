package warehouse

// The tables in the order in which a batch writes them. The columns are in
// docs/history.md and in the migrations; a test holds that the three agree.
var (
	slotTypes = &table{name: "resource_slot_types", keys: 1, guard: newer, unreverted: true, columns: []column{
		{name: "slot_name"}, {name: "slot_type"}, {name: "display_name"}, {name: "description"}, {name: "display_unit"}, {name: "number_format"},
		{name: "rank", kind: integer}, {name: "per_cluster", kind: boolean}, {name: "built_in", kind: boolean}, {name: "scale", kind: integer}, version,
	}}

	nodes = &table{name: "nodes", keys: 1, guard: newer, columns: []column{
		{name: "node_id"}, {name: "hostname"}, {name: "cluster_id"}, {name: "zone"}, {name: "region"}, {name: "rack_id"}, {name: "gpu_type"},
		{name: "labels", kind: indexed}, {name: "taints", kind: document}, {name: "annotations", kind: indexed}, {name: "conditions", kind: document},
		{name: "status"}, {name: "unschedulable", kind: boolean}, {name: "registered_at", kind: instant}, {name: "deleted_at", kind: instant},
		{name: "updated_at", kind: instant}, version,
	}}
	nodeCapacity = &table{name: "node_resource_capacity", keys: 2, guard: differ, parent: nodes, element: "slot_name", columns: []column{
		{name: "node_id"}, {name: "slot_name"}, {name: "capacity", kind: amount}, {name: "allocatable", kind: amount},
	}}
	conditionChanges = &table{name: "node_condition_changes", keys: 3, guard: never, columns: []column{
		{name: "node_id"}, {name: "condition_type"}, version, {name: "old_status", kind: optional}, {name: "new_status"}, {name: "reason"}, {name: "message"},
		{name: "changed_at", kind: instant},
	}}
	heartbeats = &table{name: "node_heartbeats", keys: 2, guard: never, unreverted: true, month: "heartbeat_time", columns: []column{
		{name: "node_id"}, {name: "heartbeat_time", kind: instant}, {name: "cpu_usage_millicores", kind: count}, {name: "memory_usage_bytes", kind: count},
		{name: "gpu_utilization_pct", kind: document}, {name: "disk_usage_bytes", kind: count}, {name: "network_rx_bytes", kind: count},
		{name: "network_tx_bytes", kind: count}, {name: "pods_running", kind: count}, {name: "pods_pending", kind: count},
		{name: "containers_running", kind: count}, {name: "load_average_1m", kind: real}, {name: "load_average_5m", kind: real}, {name: "oom_kills_total", kind: count},
	}}

	jobs = &table{name: "jobs", keys: 1, guard: newer, columns: []column{
		{name: "job_id"}, {name: "namespace"}, {name: "job_name"}, {name: "tenant_id"}, {name: "user_name"}, {name: "state"}, {name: "document", kind: document},
		{name: "created_at", kind: instant}, {name: "completed_at", kind: instant}, {name: "reason"}, {name: "message"}, version,
	}}

	allocations = &table{name: "allocations", keys: 1, guard: newer, columns: []column{
		{name: "allocation_id"}, {name: "tenant_id"}, {name: "namespace"}, {name: "allocation_name"}, {name: "unit_number", kind: integer},
		{name: "job_id", kind: optional}, {name: "job_name", kind: optional}, {name: "user_name"}, {name: "queue"}, {name: "priority", kind: integer},
		{name: "priority_class"}, {name: "preemption_policy"}, {name: "qos_class"}, {name: "group_id", kind: optional}, {name: "members", kind: integer},
		{name: "node_selector", kind: document}, {name: "affinity_rules", kind: document}, {name: "tolerations", kind: document},
		{name: "topology_constraints", kind: document}, {name: "state"}, {name: "reason"}, {name: "message"}, {name: "created_at", kind: instant},
		{name: "scheduled_at", kind: instant, rule: earliest}, {name: "started_at", kind: instant, rule: earliest}, {name: "completed_at", kind: instant},
		{name: "ttl_ms", kind: count}, {name: "time_limited", kind: boolean}, {name: "expires_at", kind: instant}, {name: "retries", kind: integer}, {name: "updated_at", kind: instant}, version,
	}}
	allocationRequests = &table{name: "allocation_requests", keys: 2, guard: differ, parent: allocations, element: "slot_name", columns: []column{
		{name: "allocation_id"}, {name: "slot_name"}, {name: "requested", kind: amount}, {name: "limit_amount", kind: amount},
	}}

	grants = &table{name: "grants", keys: 1, guard: newer, columns: []column{
		{name: "tx_id"}, {name: "allocation_id"}, {name: "namespace"}, {name: "tenant_id"}, {name: "state"}, {name: "committed_at", kind: instant},
		{name: "ready_at", kind: instant}, {name: "signaled_at", kind: instant}, {name: "ending_at", kind: instant}, {name: "ended_at", kind: instant}, {name: "evicted", kind: boolean},
		{name: "preempted_by", kind: optional}, {name: "reason"}, {name: "exits", kind: document}, version,
	}}
	grantMembers = &table{name: "grant_members", keys: 2, guard: differ, parent: grants, element: "CAST(member AS TEXT)", columns: []column{
		{name: "tx_id"}, {name: "member", kind: integer}, {name: "node_id"}, {name: "gpu_model"}, {name: "devices", kind: indexed}, {name: "ended_at", kind: instant},
	}}
	grantResources = &table{name: "grant_resources", keys: 3, guard: differ, parent: grants, element: "(CAST(member AS TEXT) || '/' || slot_name)", columns: []column{
		{name: "tx_id"}, {name: "member", kind: integer}, {name: "slot_name"}, {name: "requested", kind: amount}, {name: "used", kind: amount},
		{name: "limit_amount", kind: amount},
	}}

	queueHistory = &table{name: "queue_history", keys: 2, guard: newer, columns: []column{
		{name: "allocation_id"}, {name: "since_at", kind: instant}, {name: "until_at", kind: instant}, {name: "namespace"}, {name: "tenant_id"}, {name: "queue"},
		{name: "priority", kind: integer}, {name: "queue_state"}, {name: "reason"}, {name: "message"}, {name: "attempts", kind: integer},
		{name: "next_retry_at", kind: instant}, version,
	}}

	quotas = &table{name: "resource_quotas", keys: 4, guard: newer, columns: []column{
		{name: "namespace"}, {name: "quota_name"}, {name: "resource_type"}, {name: "from_at", kind: instant}, {name: "to_at", kind: instant}, {name: "tenant_id"},
		{name: "hard_limit", kind: amount}, {name: "soft_limit", kind: amount}, {name: "scoped", kind: boolean}, version,
	}}
	quotaUsage = &table{name: "quota_usage_history", keys: 5, guard: always, unreverted: true, month: "recorded_at", columns: []column{
		{name: "tenant_id"}, {name: "namespace"}, {name: "quota_name"}, {name: "resource_type"}, {name: "recorded_at", kind: instant},
		{name: "usage_value", kind: amount}, {name: "peak_usage", kind: amount}, {name: "peak_usage_at", kind: instant}, {name: "hard_limit", kind: amount},
		{name: "utilization_pct", kind: real},
	}}

	preemptions = &table{name: "preemption_events", keys: 1, guard: newer, columns: []column{
		{name: "preemption_id"}, {name: "preempting_tx_id", kind: optional}, {name: "preempting_job_id", kind: optional}, {name: "preempting_tenant"},
		{name: "preempting_priority", kind: integer}, {name: "preempted_job_id"}, {name: "preempted_tenant"}, {name: "preempted_priority", kind: integer},
		{name: "reason"}, {name: "initiated_at", kind: instant}, {name: "grace_period_ms", kind: integer}, {name: "evicted_at", kind: instant},
		{name: "rescheduled_at", kind: instant}, {name: "outcome"}, {name: "initiated_by"}, version,
	}}
	preemptionNodes = &table{name: "preemption_nodes", keys: 2, guard: differ, parent: preemptions, element: "node_id", columns: []column{
		{name: "preemption_id"}, {name: "node_id"}, {name: "initiated_at", kind: instant},
	}}
	preemptionFreed = &table{name: "preemption_freed", keys: 2, guard: differ, parent: preemptions, element: "slot_name", columns: []column{
		{name: "preemption_id"}, {name: "slot_name"}, {name: "freed", kind: amount},
	}}

	auditLog = &table{name: "audit_log", keys: 2, guard: newer, month: "at", columns: []column{
		{name: "audit_id"}, {name: "at", kind: instant}, {name: "actor", kind: document}, {name: "user_name"}, {name: "verb"}, {name: "kind"}, {name: "namespace"},
		{name: "object_name"}, {name: "request_id"}, {name: "result"}, version,
	}}

	usageSlices = &table{name: "usage_slices", keys: 4, guard: always, month: "from_at", columns: []column{
		{name: "tx_id"}, {name: "member", kind: integer}, {name: "slot_name"}, {name: "from_at", kind: instant}, {name: "to_at", kind: instant},
		{name: "allocation_id"}, {name: "namespace"}, {name: "tenant_id"}, {name: "node_id"}, {name: "gpu_model"}, {name: "requested", kind: amount},
		{name: "allocated", kind: amount}, {name: "limit_amount", kind: amount}, {name: "measured", kind: amount}, {name: "counter", kind: count}, version,
	}}
	usageDirty = &table{name: "usage_dirty", keys: 5, guard: never, unreverted: true, columns: []column{
		{name: "hour_start", kind: instant}, {name: "tenant_id"}, {name: "namespace"}, {name: "slot_name"}, {name: "gpu_model"},
	}}

	gaps = &table{name: "history_gaps", keys: 2, guard: never, columns: []column{
		{name: "from_revision", kind: integer}, {name: "upto_revision", kind: integer}, {name: "at", kind: instant}, {name: "reason"},
	}}
)

// version is the revision of the store that a row comes from.
var version = column{name: "resource_version", kind: integer}

// tables are all tables that batches and samples write.
func tables() []*table {
	return []*table{
		slotTypes, nodes, nodeCapacity, conditionChanges, heartbeats, jobs, allocations, allocationRequests, grants, grantMembers, grantResources,
		queueHistory, quotas, quotaUsage, preemptions, preemptionNodes, preemptionFreed, auditLog, usageSlices, usageDirty, gaps,
	}
}
