package rpc

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// conditions are the last conditions that one stream's node reported. They are
// written to the node's status when they change, for readers: no decision
// depends on them.
type conditions struct {
	written []record.Condition
	known   bool // written are the conditions in the store
}

// take records a heartbeat's conditions and reports whether they have changed.
// A condition that kept its status keeps its time.
func (c *conditions) take(said []*schedulerv1.NodeCondition, now time.Time) ([]record.Condition, bool) {
	var next []record.Condition
	for _, s := range said {
		if slices.ContainsFunc(next, func(c record.Condition) bool { return c.Type == s.GetType() }) {
			continue // a type has one condition
		}
		condition := record.Condition{
			Type: s.GetType(), Status: cmp.Or(s.GetStatus(), "Unknown"), Reason: s.GetReason(), Message: limits.Plain(s.GetMessage(), limits.MaxReason),
			LastTransition: now.UTC().Format(time.RFC3339),
		}
		for _, was := range c.written {
			if was.Type == condition.Type && was.Status == condition.Status {
				condition.LastTransition = was.LastTransition
			}
		}
		next = append(next, condition)
	}
	return next, !slices.Equal(next, c.written)
}

// report writes the node's status if a heartbeat changed it. The conditions
// from an earlier stream are read first, so that its conditions keep their
// times. A node without an identity has no status.
func (h *Heartbeats) report(ctx context.Context, node resource.NodeID, c *conditions, beat *schedulerv1.HeartbeatRequest) error {
	if !c.known {
		if err := h.recall(ctx, node, c); err != nil {
			return err
		}
	}
	next, news := c.take(beat.GetConditions(), time.Now())
	if !news {
		return nil
	}
	if ok, tell := h.spent.allow(node, Conditions, time.Now()); !ok { // a later heartbeat tries again
		if tell {
			h.Logger.Warn("node_over_budget", "node", node, "budget", Conditions.Name, "at_once", Conditions.Burst, "a_second", float64(Conditions.Second))
		}
		return nil
	}
	value, err := record.Encode(record.NodeStatus{Conditions: next})
	if err != nil {
		return err
	}
	identity, found, _, err := h.Store.Get(ctx, record.NodeIdentityKey(node))
	if err != nil || !found {
		return err
	}
	result, err := h.Store.Txn(ctx, record.Txn{
		If:   []record.Compare{record.ModRevIs(identity.Key, identity.ModRev)},
		Then: []record.Op{record.Put(record.NodeStatusKey(node), value)},
	})
	if err != nil {
		return err
	}
	if result.Succeeded { // else it registered in between; the next heartbeat tries again
		c.written = next
	}
	return nil
}

// recall reads a node's conditions from the store.
func (h *Heartbeats) recall(ctx context.Context, node resource.NodeID, c *conditions) error {
	kv, found, _, err := h.Store.Get(ctx, record.NodeStatusKey(node))
	if err != nil {
		return err
	}
	if found {
		status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		c.written = status.Conditions
	}
	c.known = true
	return nil
}
