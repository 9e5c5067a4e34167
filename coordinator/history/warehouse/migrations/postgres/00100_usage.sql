-- +goose Up

-- Marks of usage_dirty whose hours are being computed.
CREATE TABLE usage_taken (LIKE usage_dirty INCLUDING ALL);

-- Prices: an hour of per_amount units costs price from an hour on. The empty model
-- is of every model that has no price of its own.
CREATE TABLE usage_prices (
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	from_at    TIMESTAMPTZ NOT NULL,
	per_amount NUMERIC(24,6) NOT NULL CHECK (per_amount > 0),
	price      NUMERIC(14,6) NOT NULL CHECK (price >= 0),
	currency   TEXT NOT NULL,
	PRIMARY KEY (slot_name, gpu_model, from_at)
);

-- How long within an hour which amount was held in total. Times of one hour add up
-- to 3,600,000 milliseconds.
CREATE TABLE usage_levels (
	tenant_id  TEXT NOT NULL,
	namespace  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	hour_start TIMESTAMPTZ NOT NULL,
	level      NUMERIC(24,6) NOT NULL,
	ms         BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, namespace, slot_name, gpu_model, hour_start, level)
);
CREATE TABLE usage_tenant_levels (
	tenant_id  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	hour_start TIMESTAMPTZ NOT NULL,
	level      NUMERIC(24,6) NOT NULL,
	ms         BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, slot_name, hour_start, level)
);

-- The totals are integrals: units times seconds. total_measured is the measured use
-- and measured_of what was allocated in the slices that were measured: the
-- utilization is the quotient of these two, NULL where nothing was measured.
CREATE TABLE usage_hourly (
	tenant_id       TEXT NOT NULL,
	namespace       TEXT NOT NULL,
	slot_name       TEXT NOT NULL,
	gpu_model       TEXT NOT NULL,
	hour_start      TIMESTAMPTZ NOT NULL,
	avg_usage       NUMERIC(24,6) NOT NULL,
	max_usage       NUMERIC(24,6) NOT NULL,
	min_usage       NUMERIC(24,6) NOT NULL,
	p95_usage       NUMERIC(24,6) NOT NULL,
	p99_usage       NUMERIC(24,6) NOT NULL,
	total_requested NUMERIC NOT NULL,
	total_allocated NUMERIC NOT NULL,
	total_limit     NUMERIC NOT NULL,
	total_measured  NUMERIC NOT NULL,
	measured_of     NUMERIC NOT NULL,
	utilization_pct NUMERIC(12,2),
	waste_pct       NUMERIC(5,2),
	cost_units      NUMERIC(12,4) NOT NULL,
	PRIMARY KEY (tenant_id, hour_start, namespace, slot_name, gpu_model)
) PARTITION BY RANGE (hour_start);
CREATE INDEX idx_usage_resource ON usage_hourly (slot_name, hour_start DESC);

-- The sums of days, in UTC. A day that is not over counts the rest of it as 0.
CREATE TABLE usage_daily (
	tenant_id       TEXT NOT NULL,
	namespace       TEXT NOT NULL,
	slot_name       TEXT NOT NULL,
	gpu_model       TEXT NOT NULL,
	day_start       TIMESTAMPTZ NOT NULL,
	avg_usage       NUMERIC(24,6) NOT NULL,
	max_usage       NUMERIC(24,6) NOT NULL,
	min_usage       NUMERIC(24,6) NOT NULL,
	p95_usage       NUMERIC(24,6) NOT NULL,
	p99_usage       NUMERIC(24,6) NOT NULL,
	total_requested NUMERIC NOT NULL,
	total_allocated NUMERIC NOT NULL,
	total_limit     NUMERIC NOT NULL,
	total_measured  NUMERIC NOT NULL,
	measured_of     NUMERIC NOT NULL,
	utilization_pct NUMERIC(12,2),
	waste_pct       NUMERIC(5,2),
	cost_units      NUMERIC(14,4) NOT NULL,
	PRIMARY KEY (tenant_id, day_start, namespace, slot_name, gpu_model)
);

-- The sum over all namespaces and models of a tenant: the peak of a sum is not the
-- sum of peaks.
CREATE TABLE usage_tenant_hourly (
	tenant_id       TEXT NOT NULL,
	slot_name       TEXT NOT NULL,
	hour_start      TIMESTAMPTZ NOT NULL,
	avg_usage       NUMERIC(24,6) NOT NULL,
	max_usage       NUMERIC(24,6) NOT NULL,
	min_usage       NUMERIC(24,6) NOT NULL,
	p95_usage       NUMERIC(24,6) NOT NULL,
	p99_usage       NUMERIC(24,6) NOT NULL,
	total_allocated NUMERIC NOT NULL,
	PRIMARY KEY (tenant_id, hour_start, slot_name)
);

-- +goose Down
DROP TABLE usage_tenant_hourly, usage_daily, usage_hourly, usage_tenant_levels, usage_levels, usage_prices, usage_taken;
