-- +goose Up
-- Slices without duration say nothing: later versions remove them.
DELETE FROM usage_slices WHERE to_at <= from_at;
