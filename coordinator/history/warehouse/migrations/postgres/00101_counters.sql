-- +goose Up

-- The counter of the member at to_at, in milliseconds of processors or of busy devices. A
-- projector goes on by it; measured is the difference of two.
ALTER TABLE usage_slices ADD COLUMN counter BIGINT;

-- When the leader learned that a member has got the signal that announces its end.
ALTER TABLE grants ADD COLUMN signaled_at TIMESTAMPTZ;

-- Quotas count the work as Terminating: the time that it runs has a limit.
ALTER TABLE allocations ADD COLUMN time_limited BOOLEAN NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE allocations DROP COLUMN time_limited;
ALTER TABLE grants DROP COLUMN signaled_at;
ALTER TABLE usage_slices DROP COLUMN counter;
