-- +goose Up

-- The history of one cluster. Every row has resource_version, the revision of the
-- store that it comes from, and reverted: 0 is a row that counts; n is a row that the
-- n-th restore of the store took back. A reverted row is kept beside the new row of
-- the same key, therefore reverted belongs to each primary key.
-- Amounts are in base units: the unit that people read (cores, bytes, devices) times
-- the scale of the slot type. NULL in an amount is unknown or none, 0 is zero.
-- Instants are milliseconds since 1970 UTC. JSON is TEXT, booleans are 0 and 1.

CREATE TABLE resource_slot_types (
	slot_name        TEXT PRIMARY KEY,
	slot_type        TEXT NOT NULL,
	display_name     TEXT NOT NULL,
	description      TEXT NOT NULL,
	display_unit     TEXT NOT NULL,
	number_format    TEXT NOT NULL,
	rank             INTEGER NOT NULL,
	enabled          INTEGER NOT NULL DEFAULT 1,
	required         INTEGER NOT NULL DEFAULT 0,
	per_cluster      INTEGER NOT NULL DEFAULT 0,
	built_in         INTEGER NOT NULL DEFAULT 0,
	scale            INTEGER NOT NULL,
	resource_version INTEGER NOT NULL
);

CREATE TABLE nodes (
	node_id          TEXT NOT NULL,
	hostname         TEXT NOT NULL,
	cluster_id       TEXT NOT NULL,
	zone             TEXT NOT NULL,
	region           TEXT NOT NULL,
	rack_id          TEXT NOT NULL,
	gpu_type         TEXT NOT NULL,
	labels           TEXT,
	taints           TEXT,
	annotations      TEXT,
	conditions       TEXT,
	status           TEXT NOT NULL,
	unschedulable    INTEGER NOT NULL,
	registered_at    INTEGER,
	deleted_at       INTEGER,
	updated_at       INTEGER,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (node_id, reverted)
);

CREATE TABLE node_resource_capacity (
	node_id     TEXT NOT NULL,
	slot_name   TEXT NOT NULL,
	capacity    INTEGER NOT NULL DEFAULT 0,
	allocatable INTEGER NOT NULL DEFAULT 0,
	reverted    INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (node_id, slot_name, reverted),
	FOREIGN KEY (node_id, reverted) REFERENCES nodes ON DELETE CASCADE ON UPDATE CASCADE
) WITHOUT ROWID;

CREATE TABLE node_condition_changes (
	node_id          TEXT NOT NULL,
	condition_type   TEXT NOT NULL,
	old_status       TEXT,
	new_status       TEXT NOT NULL,
	reason           TEXT NOT NULL,
	message          TEXT NOT NULL,
	changed_at       INTEGER,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (node_id, condition_type, resource_version, reverted)
) WITHOUT ROWID;

CREATE TABLE node_heartbeats (
	node_id              TEXT NOT NULL,
	heartbeat_time       INTEGER NOT NULL,
	cpu_usage_millicores INTEGER,
	memory_usage_bytes   INTEGER,
	gpu_utilization_pct  TEXT,
	disk_usage_bytes     INTEGER,
	network_rx_bytes     INTEGER,
	network_tx_bytes     INTEGER,
	pods_running         INTEGER,
	pods_pending         INTEGER,
	containers_running   INTEGER,
	load_average_1m      REAL,
	load_average_5m      REAL,
	oom_kills_total      INTEGER,
	PRIMARY KEY (node_id, heartbeat_time)
) WITHOUT ROWID;

CREATE TABLE jobs (
	job_id           TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	job_name         TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	user_name        TEXT NOT NULL,
	state            TEXT NOT NULL,
	document         TEXT,
	created_at       INTEGER,
	completed_at     INTEGER,
	reason           TEXT NOT NULL,
	message          TEXT NOT NULL,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (job_id, reverted)
);

CREATE TABLE allocations (
	allocation_id        TEXT NOT NULL,
	tenant_id            TEXT NOT NULL,
	namespace            TEXT NOT NULL,
	allocation_name      TEXT NOT NULL,
	unit_number          INTEGER NOT NULL,
	job_id               TEXT,
	job_name             TEXT,
	user_name            TEXT NOT NULL,
	queue                TEXT NOT NULL,
	priority             INTEGER NOT NULL,
	priority_class       TEXT NOT NULL,
	preemption_policy    TEXT NOT NULL,
	qos_class            TEXT NOT NULL,
	group_id             TEXT,
	members              INTEGER NOT NULL,
	node_selector        TEXT,
	affinity_rules       TEXT,
	tolerations          TEXT,
	topology_constraints TEXT,
	state                TEXT NOT NULL,
	reason               TEXT NOT NULL,
	message              TEXT NOT NULL,
	created_at           INTEGER,
	scheduled_at         INTEGER,
	started_at           INTEGER,
	completed_at         INTEGER,
	ttl_ms               INTEGER,
	expires_at           INTEGER,
	retries              INTEGER NOT NULL,
	updated_at           INTEGER,
	resource_version     INTEGER NOT NULL,
	reverted             INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (allocation_id, reverted)
);

CREATE TABLE allocation_requests (
	allocation_id TEXT NOT NULL,
	slot_name     TEXT NOT NULL,
	requested     INTEGER NOT NULL,
	limit_amount  INTEGER,
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (allocation_id, slot_name, reverted),
	FOREIGN KEY (allocation_id, reverted) REFERENCES allocations ON DELETE CASCADE ON UPDATE CASCADE
) WITHOUT ROWID;

CREATE TABLE grants (
	tx_id            TEXT NOT NULL,
	allocation_id    TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	state            TEXT NOT NULL,
	committed_at     INTEGER,
	ready_at         INTEGER,
	ending_at        INTEGER,
	ended_at         INTEGER,
	evicted          INTEGER NOT NULL,
	preempted_by     TEXT,
	reason           TEXT NOT NULL,
	exits            TEXT,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, reverted)
) WITHOUT ROWID;

CREATE TABLE grant_members (
	tx_id     TEXT NOT NULL,
	member    INTEGER NOT NULL,
	node_id   TEXT NOT NULL,
	gpu_model TEXT NOT NULL,
	devices   TEXT,
	ended_at  INTEGER,
	reverted  INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, member, reverted),
	FOREIGN KEY (tx_id, reverted) REFERENCES grants ON DELETE CASCADE ON UPDATE CASCADE
) WITHOUT ROWID;

CREATE TABLE grant_resources (
	tx_id        TEXT NOT NULL,
	member       INTEGER NOT NULL,
	slot_name    TEXT NOT NULL,
	requested    INTEGER NOT NULL,
	used         INTEGER,
	limit_amount INTEGER,
	reverted     INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, member, slot_name, reverted),
	FOREIGN KEY (tx_id, reverted) REFERENCES grants ON DELETE CASCADE ON UPDATE CASCADE
) WITHOUT ROWID;

CREATE TABLE queue_history (
	allocation_id    TEXT NOT NULL,
	since_at         INTEGER NOT NULL,
	until_at         INTEGER,
	namespace        TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	queue            TEXT NOT NULL,
	priority         INTEGER NOT NULL,
	queue_state      TEXT NOT NULL,
	reason           TEXT NOT NULL,
	message          TEXT NOT NULL,
	attempts         INTEGER NOT NULL,
	next_retry_at    INTEGER,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (allocation_id, since_at, reverted)
) WITHOUT ROWID;

-- A namespace is the empty text, never NULL, for the quota of a whole tenant:
-- a database would let equal rows with NULL repeat.
CREATE TABLE resource_quotas (
	namespace        TEXT NOT NULL,
	quota_name       TEXT NOT NULL,
	resource_type    TEXT NOT NULL,
	from_at          INTEGER NOT NULL,
	to_at            INTEGER,
	tenant_id        TEXT NOT NULL,
	hard_limit       INTEGER,
	soft_limit       INTEGER,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (namespace, quota_name, resource_type, from_at, reverted)
) WITHOUT ROWID;

CREATE TABLE quota_usage_history (
	tenant_id       TEXT NOT NULL,
	namespace       TEXT NOT NULL,
	quota_name      TEXT NOT NULL,
	resource_type   TEXT NOT NULL,
	recorded_at     INTEGER NOT NULL,
	usage_value     INTEGER NOT NULL,
	peak_usage      INTEGER NOT NULL,
	peak_usage_at   INTEGER,
	hard_limit      INTEGER,
	utilization_pct REAL,
	PRIMARY KEY (tenant_id, namespace, quota_name, resource_type, recorded_at)
) WITHOUT ROWID;

CREATE TABLE preemption_events (
	preemption_id         TEXT NOT NULL,
	preempting_tx_id      TEXT,
	preempting_job_id     TEXT,
	preempting_tenant     TEXT NOT NULL,
	preempting_priority   INTEGER NOT NULL,
	preempted_job_id      TEXT NOT NULL,
	preempted_tenant      TEXT NOT NULL,
	preempted_priority    INTEGER NOT NULL,
	reason                TEXT NOT NULL,
	initiated_at          INTEGER NOT NULL,
	grace_period_ms       INTEGER NOT NULL,
	evicted_at            INTEGER,
	rescheduled_at        INTEGER,
	outcome               TEXT NOT NULL,
	initiated_by          TEXT NOT NULL,
	resource_version      INTEGER NOT NULL,
	reverted              INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (preemption_id, reverted)
) WITHOUT ROWID;

CREATE TABLE preemption_nodes (
	preemption_id TEXT NOT NULL,
	node_id       TEXT NOT NULL,
	initiated_at  INTEGER NOT NULL,
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (preemption_id, node_id, reverted),
	FOREIGN KEY (preemption_id, reverted) REFERENCES preemption_events ON DELETE CASCADE ON UPDATE CASCADE
) WITHOUT ROWID;

CREATE TABLE preemption_freed (
	preemption_id TEXT NOT NULL,
	slot_name     TEXT NOT NULL,
	freed         INTEGER NOT NULL,
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (preemption_id, slot_name, reverted),
	FOREIGN KEY (preemption_id, reverted) REFERENCES preemption_events ON DELETE CASCADE ON UPDATE CASCADE
) WITHOUT ROWID;

CREATE TABLE audit_log (
	audit_id         TEXT NOT NULL,
	at               INTEGER NOT NULL,
	actor            TEXT,
	user_name        TEXT NOT NULL,
	verb             TEXT NOT NULL,
	kind             TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	object_name      TEXT NOT NULL,
	request_id       TEXT NOT NULL,
	result           TEXT NOT NULL,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (audit_id, at, reverted)
);

-- Amount and duration stay apart; measured is the integral over the interval, in
-- base units times milliseconds.
CREATE TABLE usage_slices (
	tx_id            TEXT NOT NULL,
	member           INTEGER NOT NULL,
	slot_name        TEXT NOT NULL,
	from_at          INTEGER NOT NULL,
	to_at            INTEGER NOT NULL,
	allocation_id    TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	node_id          TEXT NOT NULL,
	gpu_model        TEXT NOT NULL,
	requested        INTEGER NOT NULL,
	allocated        INTEGER NOT NULL,
	limit_amount     INTEGER,
	measured         INTEGER,
	resource_version INTEGER NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, member, slot_name, from_at, reverted)
) WITHOUT ROWID;

-- The hours whose sums are older than their slices.
CREATE TABLE usage_dirty (
	hour_start INTEGER NOT NULL,
	tenant_id  TEXT NOT NULL,
	namespace  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	PRIMARY KEY (hour_start, tenant_id, namespace, slot_name, gpu_model)
) WITHOUT ROWID;

CREATE TABLE history_gaps (
	from_revision INTEGER NOT NULL,
	upto_revision INTEGER NOT NULL,
	at            INTEGER,
	reason        TEXT NOT NULL,
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (from_revision, upto_revision, reverted)
) WITHOUT ROWID;

CREATE TABLE history_position (
	id         INTEGER PRIMARY KEY CHECK (id = 1),
	revision   INTEGER NOT NULL,
	mark       TEXT NOT NULL,
	at         INTEGER,
	written_at INTEGER
);
INSERT INTO history_position (id, revision, mark) VALUES (1, 0, '');

CREATE TABLE history_reverts (
	number      INTEGER PRIMARY KEY,
	to_revision INTEGER NOT NULL,
	at          INTEGER NOT NULL,
	rows        INTEGER NOT NULL
);

-- +goose Down
DROP TABLE history_reverts;
DROP TABLE history_position;
DROP TABLE history_gaps;
DROP TABLE usage_dirty;
DROP TABLE usage_slices;
DROP TABLE audit_log;
DROP TABLE preemption_freed;
DROP TABLE preemption_nodes;
DROP TABLE preemption_events;
DROP TABLE quota_usage_history;
DROP TABLE resource_quotas;
DROP TABLE queue_history;
DROP TABLE grant_resources;
DROP TABLE grant_members;
DROP TABLE grants;
DROP TABLE allocation_requests;
DROP TABLE allocations;
DROP TABLE jobs;
DROP TABLE node_heartbeats;
DROP TABLE node_condition_changes;
DROP TABLE node_resource_capacity;
DROP TABLE nodes;
DROP TABLE resource_slot_types;
