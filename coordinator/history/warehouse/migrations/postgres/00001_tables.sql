-- +goose Up

-- The history of one cluster. Every row has resource_version, the revision of the
-- store that it comes from, and reverted: 0 is a row that counts; n is a row that the
-- n-th restore of the store took back. A reverted row is kept beside the new row of
-- the same key, therefore reverted belongs to each primary key.
-- Amounts are in the units that people read (cores, bytes, devices), times the scale
-- of the slot type in the store. NULL in an amount is unknown or none, 0 is zero.
-- Documents are JSON, not JSONB, which refuses texts that the store accepts.

CREATE TABLE resource_slot_types (
	slot_name        TEXT PRIMARY KEY,
	slot_type        TEXT NOT NULL,
	display_name     TEXT NOT NULL,
	description      TEXT NOT NULL,
	display_unit     TEXT NOT NULL,
	number_format    TEXT NOT NULL,
	rank             INTEGER NOT NULL,
	enabled          BOOLEAN NOT NULL DEFAULT TRUE,
	required         BOOLEAN NOT NULL DEFAULT FALSE,
	per_cluster      BOOLEAN NOT NULL DEFAULT FALSE,
	built_in         BOOLEAN NOT NULL DEFAULT FALSE,
	scale            BIGINT NOT NULL,
	resource_version BIGINT NOT NULL
);

CREATE TABLE nodes (
	node_id          TEXT NOT NULL,
	hostname         TEXT NOT NULL,
	cluster_id       TEXT NOT NULL,
	zone             TEXT NOT NULL,
	region           TEXT NOT NULL,
	rack_id          TEXT NOT NULL,
	gpu_type         TEXT NOT NULL,
	labels           JSONB,
	taints           JSON,
	annotations      JSONB,
	conditions       JSON,
	status           TEXT NOT NULL,
	unschedulable    BOOLEAN NOT NULL,
	registered_at    TIMESTAMPTZ,
	deleted_at       TIMESTAMPTZ,
	updated_at       TIMESTAMPTZ,
	resource_version BIGINT NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (node_id, reverted)
);

CREATE TABLE node_resource_capacity (
	node_id     TEXT NOT NULL,
	slot_name   TEXT NOT NULL,
	capacity    NUMERIC(24,6) NOT NULL DEFAULT 0,
	allocatable NUMERIC(24,6) NOT NULL DEFAULT 0,
	reverted    INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (node_id, slot_name, reverted),
	FOREIGN KEY (node_id, reverted) REFERENCES nodes ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE TABLE node_condition_changes (
	node_id          TEXT NOT NULL,
	condition_type   TEXT NOT NULL,
	old_status       TEXT,
	new_status       TEXT NOT NULL,
	reason           TEXT NOT NULL,
	message          TEXT NOT NULL,
	changed_at       TIMESTAMPTZ,
	resource_version BIGINT NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (node_id, condition_type, resource_version, reverted)
);

CREATE TABLE node_heartbeats (
	node_id              TEXT NOT NULL,
	heartbeat_time       TIMESTAMPTZ NOT NULL,
	cpu_usage_millicores BIGINT,
	memory_usage_bytes   BIGINT,
	gpu_utilization_pct  JSON,
	disk_usage_bytes     BIGINT,
	network_rx_bytes     BIGINT,
	network_tx_bytes     BIGINT,
	pods_running         INTEGER,
	pods_pending         INTEGER,
	containers_running   INTEGER,
	load_average_1m      DOUBLE PRECISION,
	load_average_5m      DOUBLE PRECISION,
	oom_kills_total      BIGINT,
	PRIMARY KEY (node_id, heartbeat_time)
) PARTITION BY RANGE (heartbeat_time);

CREATE TABLE jobs (
	job_id           TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	job_name         TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	user_name        TEXT NOT NULL,
	state            TEXT NOT NULL,
	document         JSON,
	created_at       TIMESTAMPTZ,
	completed_at     TIMESTAMPTZ,
	reason           TEXT NOT NULL,
	message          TEXT NOT NULL,
	resource_version BIGINT NOT NULL,
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
	node_selector        JSON,
	affinity_rules       JSON,
	tolerations          JSON,
	topology_constraints JSON,
	state                TEXT NOT NULL,
	reason               TEXT NOT NULL,
	message              TEXT NOT NULL,
	created_at           TIMESTAMPTZ,
	scheduled_at         TIMESTAMPTZ,
	started_at           TIMESTAMPTZ,
	completed_at         TIMESTAMPTZ,
	ttl_ms               BIGINT,
	expires_at           TIMESTAMPTZ,
	retries              INTEGER NOT NULL,
	updated_at           TIMESTAMPTZ,
	resource_version     BIGINT NOT NULL,
	reverted             INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (allocation_id, reverted)
) WITH (fillfactor = 80);

CREATE TABLE allocation_requests (
	allocation_id TEXT NOT NULL,
	slot_name     TEXT NOT NULL,
	requested     NUMERIC(24,6) NOT NULL,
	limit_amount  NUMERIC(24,6),
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (allocation_id, slot_name, reverted),
	FOREIGN KEY (allocation_id, reverted) REFERENCES allocations ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE TABLE grants (
	tx_id            TEXT NOT NULL,
	allocation_id    TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	state            TEXT NOT NULL,
	committed_at     TIMESTAMPTZ,
	ready_at         TIMESTAMPTZ,
	ending_at        TIMESTAMPTZ,
	ended_at         TIMESTAMPTZ,
	evicted          BOOLEAN NOT NULL,
	preempted_by     TEXT,
	reason           TEXT NOT NULL,
	exits            JSON,
	resource_version BIGINT NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, reverted)
) WITH (fillfactor = 80);

CREATE TABLE grant_members (
	tx_id     TEXT NOT NULL,
	member    INTEGER NOT NULL,
	node_id   TEXT NOT NULL,
	gpu_model TEXT NOT NULL,
	devices   JSONB,
	ended_at  TIMESTAMPTZ,
	reverted  INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, member, reverted),
	FOREIGN KEY (tx_id, reverted) REFERENCES grants ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE TABLE grant_resources (
	tx_id        TEXT NOT NULL,
	member       INTEGER NOT NULL,
	slot_name    TEXT NOT NULL,
	requested    NUMERIC(24,6) NOT NULL,
	used         NUMERIC(24,6),
	limit_amount NUMERIC(24,6),
	reverted     INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, member, slot_name, reverted),
	FOREIGN KEY (tx_id, reverted) REFERENCES grants ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE TABLE queue_history (
	allocation_id    TEXT NOT NULL,
	since_at         TIMESTAMPTZ NOT NULL,
	until_at         TIMESTAMPTZ,
	namespace        TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	queue            TEXT NOT NULL,
	priority         INTEGER NOT NULL,
	queue_state      TEXT NOT NULL,
	reason           TEXT NOT NULL,
	message          TEXT NOT NULL,
	attempts         INTEGER NOT NULL,
	next_retry_at    TIMESTAMPTZ,
	resource_version BIGINT NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (allocation_id, since_at, reverted)
) WITH (fillfactor = 80);

-- A namespace is the empty text, never NULL, for the quota of a whole tenant:
-- PostgreSQL would let equal rows with NULL repeat.
CREATE TABLE resource_quotas (
	namespace        TEXT NOT NULL,
	quota_name       TEXT NOT NULL,
	resource_type    TEXT NOT NULL,
	from_at          TIMESTAMPTZ NOT NULL,
	to_at            TIMESTAMPTZ,
	tenant_id        TEXT NOT NULL,
	hard_limit       NUMERIC(24,6),
	soft_limit       NUMERIC(24,6),
	resource_version BIGINT NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (namespace, quota_name, resource_type, from_at, reverted)
);

CREATE TABLE quota_usage_history (
	tenant_id       TEXT NOT NULL,
	namespace       TEXT NOT NULL,
	quota_name      TEXT NOT NULL,
	resource_type   TEXT NOT NULL,
	recorded_at     TIMESTAMPTZ NOT NULL,
	usage_value     NUMERIC(24,6) NOT NULL,
	peak_usage      NUMERIC(24,6) NOT NULL,
	peak_usage_at   TIMESTAMPTZ,
	hard_limit      NUMERIC(24,6),
	utilization_pct DOUBLE PRECISION,
	PRIMARY KEY (tenant_id, namespace, quota_name, resource_type, recorded_at)
) PARTITION BY RANGE (recorded_at);

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
	initiated_at          TIMESTAMPTZ NOT NULL,
	grace_period_ms       BIGINT NOT NULL,
	evicted_at            TIMESTAMPTZ,
	rescheduled_at        TIMESTAMPTZ,
	outcome               TEXT NOT NULL,
	initiated_by          TEXT NOT NULL,
	resource_version      BIGINT NOT NULL,
	reverted              INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (preemption_id, reverted)
);

CREATE TABLE preemption_nodes (
	preemption_id TEXT NOT NULL,
	node_id       TEXT NOT NULL,
	initiated_at  TIMESTAMPTZ NOT NULL,
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (preemption_id, node_id, reverted),
	FOREIGN KEY (preemption_id, reverted) REFERENCES preemption_events ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE TABLE preemption_freed (
	preemption_id TEXT NOT NULL,
	slot_name     TEXT NOT NULL,
	freed         NUMERIC(24,6) NOT NULL,
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (preemption_id, slot_name, reverted),
	FOREIGN KEY (preemption_id, reverted) REFERENCES preemption_events ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE TABLE audit_log (
	audit_id         TEXT NOT NULL,
	at               TIMESTAMPTZ NOT NULL,
	actor            JSON,
	user_name        TEXT NOT NULL,
	verb             TEXT NOT NULL,
	kind             TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	object_name      TEXT NOT NULL,
	request_id       TEXT NOT NULL,
	result           TEXT NOT NULL,
	resource_version BIGINT NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (audit_id, at, reverted)
) PARTITION BY RANGE (at);

-- Amount and duration stay apart; measured is the integral over the interval, in
-- units times seconds.
CREATE TABLE usage_slices (
	tx_id            TEXT NOT NULL,
	member           INTEGER NOT NULL,
	slot_name        TEXT NOT NULL,
	from_at          TIMESTAMPTZ NOT NULL,
	to_at            TIMESTAMPTZ NOT NULL,
	allocation_id    TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	tenant_id        TEXT NOT NULL,
	node_id          TEXT NOT NULL,
	gpu_model        TEXT NOT NULL,
	requested        NUMERIC(24,6) NOT NULL,
	allocated        NUMERIC(24,6) NOT NULL,
	limit_amount     NUMERIC(24,6),
	measured         NUMERIC,
	resource_version BIGINT NOT NULL,
	reverted         INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tx_id, member, slot_name, from_at, reverted)
) PARTITION BY RANGE (from_at);

-- The hours whose sums are older than their slices.
CREATE TABLE usage_dirty (
	hour_start TIMESTAMPTZ NOT NULL,
	tenant_id  TEXT NOT NULL,
	namespace  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	PRIMARY KEY (hour_start, tenant_id, namespace, slot_name, gpu_model)
);

CREATE TABLE history_gaps (
	from_revision BIGINT NOT NULL,
	upto_revision BIGINT NOT NULL,
	at            TIMESTAMPTZ,
	reason        TEXT NOT NULL,
	reverted      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (from_revision, upto_revision, reverted)
);

CREATE TABLE history_position (
	id         INTEGER PRIMARY KEY CHECK (id = 1),
	revision   BIGINT NOT NULL,
	mark       TEXT NOT NULL,
	at         TIMESTAMPTZ,
	written_at TIMESTAMPTZ
);
INSERT INTO history_position (id, revision, mark) VALUES (1, 0, '');

CREATE TABLE history_reverts (
	number      INTEGER PRIMARY KEY,
	to_revision BIGINT NOT NULL,
	at          TIMESTAMPTZ NOT NULL,
	rows        BIGINT NOT NULL
);

-- Months that retention has taken off their table, until retention drops them.
CREATE TABLE history_detached (
	table_name  TEXT PRIMARY KEY,
	parent      TEXT NOT NULL,
	from_at     TIMESTAMPTZ NOT NULL,
	to_at       TIMESTAMPTZ NOT NULL,
	detached_at TIMESTAMPTZ NOT NULL
);

-- +goose Down
DROP TABLE history_detached, history_reverts, history_position, history_gaps, usage_dirty, usage_slices, audit_log, preemption_freed,
	preemption_nodes, preemption_events, quota_usage_history, resource_quotas, queue_history, grant_resources, grant_members, grants,
	allocation_requests, allocations, jobs, node_heartbeats, node_condition_changes, node_resource_capacity, nodes, resource_slot_types;
