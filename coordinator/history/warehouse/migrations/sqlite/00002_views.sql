-- +goose Up

-- The resources of nodes beyond those that are built in.
CREATE VIEW node_extended_resources AS
SELECT c.node_id, c.slot_name AS resource_name, c.capacity, c.allocatable
FROM node_resource_capacity c JOIN resource_slot_types t ON t.slot_name = c.slot_name
WHERE NOT t.built_in AND c.reverted = 0;

-- What an allocation asked for and what its last grant holds or held. used is NULL
-- until a node is assigned; free_at is NULL while the grant holds something.
CREATE VIEW resource_allocations AS
SELECT r.allocation_id, r.slot_name, r.requested, r.limit_amount,
	(SELECT sum(u.used) FROM grant_resources u WHERE u.tx_id = g.tx_id AND u.slot_name = r.slot_name AND u.reverted = 0) AS used,
	g.committed_at AS used_at, g.ended_at AS free_at
FROM allocation_requests r
LEFT JOIN grants g ON g.reverted = 0 AND g.tx_id = (
	SELECT l.tx_id FROM grants l WHERE l.allocation_id = r.allocation_id AND l.reverted = 0 ORDER BY l.committed_at DESC, l.tx_id DESC LIMIT 1)
WHERE r.reverted = 0;

-- Capacity of nodes beside what is held on them: used by grants whose nodes all hold
-- them, reserved by grants that are not ready yet.
CREATE VIEW node_resource_occupancy AS
SELECT c.node_id, c.slot_name, c.capacity, c.allocatable,
	coalesce(sum(u.used) FILTER (WHERE g.ready_at IS NOT NULL), 0) AS used,
	coalesce(sum(u.requested) FILTER (WHERE g.ready_at IS NULL AND g.tx_id IS NOT NULL), 0) AS reserved
FROM node_resource_capacity c
LEFT JOIN grant_members m ON m.node_id = c.node_id AND m.ended_at IS NULL AND m.reverted = 0
LEFT JOIN grants g ON g.tx_id = m.tx_id AND g.reverted = 0 AND g.ended_at IS NULL
LEFT JOIN grant_resources u ON u.tx_id = g.tx_id AND u.member = m.member AND u.slot_name = c.slot_name AND u.reverted = 0
WHERE c.reverted = 0
GROUP BY c.node_id, c.slot_name, c.capacity, c.allocatable;

-- +goose Down
DROP VIEW node_resource_occupancy;
DROP VIEW resource_allocations;
DROP VIEW node_extended_resources;
