-- +goose Up

-- The counter of the member at to_at, in milliseconds of processors or of busy devices. A
-- projector goes on by it; measured is the difference of two.
ALTER TABLE usage_slices ADD COLUMN counter BIGINT;

-- When the leader learned that a member has got the signal that announces its end.
ALTER TABLE grants ADD COLUMN signaled_at TIMESTAMPTZ;

-- Quotas count the work as Terminating: the time that it runs has a limit.
ALTER TABLE allocations ADD COLUMN time_limited BOOLEAN NOT NULL DEFAULT false;

-- How much of a slot was used, by the time: the greatest use and its percentiles, NULL
-- where nothing was measured. A time without a measurement counts as 0.
CREATE TABLE usage_used_levels (LIKE usage_levels INCLUDING ALL);
ALTER TABLE usage_hourly ADD COLUMN max_used NUMERIC(24,6), ADD COLUMN p95_used NUMERIC(24,6), ADD COLUMN p99_used NUMERIC(24,6);
ALTER TABLE usage_daily ADD COLUMN max_used NUMERIC(24,6), ADD COLUMN p95_used NUMERIC(24,6), ADD COLUMN p99_used NUMERIC(24,6);

-- The quota counts a part of the work alone, by scopes.
ALTER TABLE resource_quotas ADD COLUMN scoped BOOLEAN NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE resource_quotas DROP COLUMN scoped;
ALTER TABLE usage_daily DROP COLUMN max_used, DROP COLUMN p95_used, DROP COLUMN p99_used;
ALTER TABLE usage_hourly DROP COLUMN max_used, DROP COLUMN p95_used, DROP COLUMN p99_used;
DROP TABLE usage_used_levels;
ALTER TABLE allocations DROP COLUMN time_limited;
ALTER TABLE grants DROP COLUMN signaled_at;
ALTER TABLE usage_slices DROP COLUMN counter;
