-- +goose Up

-- The counter of the member at to_at, in milliseconds of processors or of busy devices. A
-- projector goes on by it; measured is the difference of two.
ALTER TABLE usage_slices ADD COLUMN counter INTEGER;

-- When the leader learned that a member has got the signal that announces its end.
ALTER TABLE grants ADD COLUMN signaled_at INTEGER;

-- Quotas count the work as Terminating: the time that it runs has a limit.
ALTER TABLE allocations ADD COLUMN time_limited INTEGER NOT NULL DEFAULT 0;

-- How much of a slot was used, by the time: the greatest use and its percentiles, NULL
-- where nothing was measured. A time without a measurement counts as 0.
CREATE TABLE usage_used_levels (
	tenant_id  TEXT NOT NULL,
	namespace  TEXT NOT NULL,
	slot_name  TEXT NOT NULL,
	gpu_model  TEXT NOT NULL,
	hour_start INTEGER NOT NULL,
	level      INTEGER NOT NULL,
	ms         INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, namespace, slot_name, gpu_model, hour_start, level)
);
ALTER TABLE usage_hourly ADD COLUMN max_used INTEGER;
ALTER TABLE usage_hourly ADD COLUMN p95_used INTEGER;
ALTER TABLE usage_hourly ADD COLUMN p99_used INTEGER;
ALTER TABLE usage_daily ADD COLUMN max_used INTEGER;
ALTER TABLE usage_daily ADD COLUMN p95_used INTEGER;
ALTER TABLE usage_daily ADD COLUMN p99_used INTEGER;

-- The quota counts a part of the work alone, by scopes.
ALTER TABLE resource_quotas ADD COLUMN scoped INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE resource_quotas DROP COLUMN scoped;
ALTER TABLE usage_daily DROP COLUMN max_used;
ALTER TABLE usage_daily DROP COLUMN p95_used;
ALTER TABLE usage_daily DROP COLUMN p99_used;
ALTER TABLE usage_hourly DROP COLUMN max_used;
ALTER TABLE usage_hourly DROP COLUMN p95_used;
ALTER TABLE usage_hourly DROP COLUMN p99_used;
DROP TABLE usage_used_levels;
ALTER TABLE allocations DROP COLUMN time_limited;
ALTER TABLE grants DROP COLUMN signaled_at;
ALTER TABLE usage_slices DROP COLUMN counter;
