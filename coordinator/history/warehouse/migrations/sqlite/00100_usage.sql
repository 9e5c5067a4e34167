-- +goose Up

-- Marks of usage_dirty whose hours are being computed.
CREATE TABLE usage_taken (
	hour_start INTEGER NOT NULL,
	tenant_id  TEXT NOT NULL,
	namespace  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	PRIMARY KEY (hour_start, tenant_id, namespace, slot_name, gpu_model)
) WITHOUT ROWID;

-- Prices: an hour of per_amount base units costs price millionths from an hour on. The empty model
-- is of every model that has no price of its own.
CREATE TABLE usage_prices (
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	from_at    INTEGER NOT NULL,
	per_amount INTEGER NOT NULL CHECK (per_amount > 0),
	price      INTEGER NOT NULL CHECK (price >= 0),
	currency   TEXT NOT NULL,
	PRIMARY KEY (slot_name, gpu_model, from_at)
) WITHOUT ROWID;

-- How long within an hour which amount was held in total. Times of one hour add up
-- to 3,600,000 milliseconds.
CREATE TABLE usage_levels (
	tenant_id  TEXT NOT NULL,
	namespace  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	hour_start INTEGER NOT NULL,
	level      INTEGER NOT NULL,
	ms         INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, namespace, slot_name, gpu_model, hour_start, level)
) WITHOUT ROWID;
CREATE TABLE usage_tenant_levels (
	tenant_id  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	hour_start INTEGER NOT NULL,
	level      INTEGER NOT NULL,
	ms         INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, slot_name, hour_start, level)
) WITHOUT ROWID;

-- The totals are integrals, decimal texts: base units times milliseconds. Costs are
-- hundredths of a cent. total_measured is the measured use
-- and measured_of what was allocated in the slices that were measured: the
-- utilization is the quotient of these two, NULL where nothing was measured.
CREATE TABLE usage_hourly (
	tenant_id       TEXT NOT NULL,
	namespace       TEXT NOT NULL,
	slot_name       TEXT NOT NULL,
	gpu_model       TEXT NOT NULL,
	hour_start      INTEGER NOT NULL,
	avg_usage       INTEGER NOT NULL,
	max_usage       INTEGER NOT NULL,
	min_usage       INTEGER NOT NULL,
	p95_usage       INTEGER NOT NULL,
	p99_usage       INTEGER NOT NULL,
	total_requested TEXT NOT NULL,
	total_allocated TEXT NOT NULL,
	total_limit     TEXT NOT NULL,
	total_measured  TEXT NOT NULL,
	measured_of     TEXT NOT NULL,
	utilization_pct REAL,
	waste_pct       REAL,
	cost_units      INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, hour_start, namespace, slot_name, gpu_model)
) WITHOUT ROWID;
CREATE INDEX idx_usage_resource ON usage_hourly (slot_name, hour_start DESC);

-- The sums of days, in UTC. A day that is not over counts the rest of it as 0.
CREATE TABLE usage_daily (
	tenant_id       TEXT NOT NULL,
	namespace       TEXT NOT NULL,
	slot_name       TEXT NOT NULL,
	gpu_model       TEXT NOT NULL,
	day_start       INTEGER NOT NULL,
	avg_usage       INTEGER NOT NULL,
	max_usage       INTEGER NOT NULL,
	min_usage       INTEGER NOT NULL,
	p95_usage       INTEGER NOT NULL,
	p99_usage       INTEGER NOT NULL,
	total_requested TEXT NOT NULL,
	total_allocated TEXT NOT NULL,
	total_limit     TEXT NOT NULL,
	total_measured  TEXT NOT NULL,
	measured_of     TEXT NOT NULL,
	utilization_pct REAL,
	waste_pct       REAL,
	cost_units      INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, day_start, namespace, slot_name, gpu_model)
) WITHOUT ROWID;

-- The sum over all namespaces and models of a tenant: the peak of a sum is not the
-- sum of peaks.
CREATE TABLE usage_tenant_hourly (
	tenant_id       TEXT NOT NULL,
	slot_name       TEXT NOT NULL,
	hour_start      INTEGER NOT NULL,
	avg_usage       INTEGER NOT NULL,
	max_usage       INTEGER NOT NULL,
	min_usage       INTEGER NOT NULL,
	p95_usage       INTEGER NOT NULL,
	p99_usage       INTEGER NOT NULL,
	total_allocated TEXT NOT NULL,
	PRIMARY KEY (tenant_id, hour_start, slot_name)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE usage_tenant_hourly;
DROP TABLE usage_daily;
DROP TABLE usage_hourly;
DROP TABLE usage_tenant_levels;
DROP TABLE usage_levels;
DROP TABLE usage_prices;
DROP TABLE usage_taken;
