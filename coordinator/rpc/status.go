package rpc

import (
	"context"
	"time"

	"github.com/musterd/muster/coordinator/store"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// conditions are what one stream's node last said of itself. They are written
// to the node's status when they change, for readers: nothing is decided by
// them.
type conditions struct {
	written []store.Condition
}

// take notes what a heartbeat says and reports whether that is news. A
// condition that kept its status keeps its time.
func (c *conditions) take(said []*schedulerv1.NodeCondition, now time.Time) ([]store.Condition, bool) {
	news := len(said) != len(c.written)
	next := make([]store.Condition, len(said))
	for i, s := range said {
		next[i] = store.Condition{
			Type: s.GetType(), Status: s.GetStatus(), Reason: s.GetReason(), Message: s.GetMessage(),
			LastTransition: now.UTC().Format(time.RFC3339),
		}
		for _, was := range c.written {
			if was.Type == next[i].Type && was.Status == next[i].Status {
				next[i].LastTransition = was.LastTransition
			}
		}
		news = news || next[i] != c.written[i]
	}
	return next, news
}

// report writes the node's status if a heartbeat brought news.
func (h *Heartbeats) report(ctx context.Context, node resource.NodeID, c *conditions, beat *schedulerv1.HeartbeatRequest) error {
	next, news := c.take(beat.GetConditions(), time.Now())
	if !news {
		return nil
	}
	value, err := store.Encode(store.NodeStatus{Conditions: next})
	if err != nil {
		return err
	}
	if _, err := h.Store.Txn(ctx, store.Txn{Then: []store.Op{store.Put(store.NodeStatusKey(node), value)}}); err != nil {
		return err
	}
	c.written = next
	return nil
}
