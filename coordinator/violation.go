package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// severTries and severPatience bound the write of an isolation at the end of a
// term.
const (
	severTries    = 3
	severPatience = 2 * time.Second
)

// disconnectViolator isolates a node after a message of which a term has ended: no stream to
// it is opened by this process again, nor by another once it is in the store,
// until an operator lets it back.
func (c *Coordinator) disconnectViolator(id resource.NodeID, detail string) {
	c.metrics.violations.WithLabelValues(lead.ViolationPanic).Inc()
	c.mu.Lock()
	t := c.targets[id]
	t.fell = true
	c.targets[id] = t
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), severPatience)
	defer cancel()
	var err error
	for range severTries {
		if err = c.writeSevered(ctx, id, detail); err == nil {
			return
		}
	}
	c.log.Error("violation_not_written", "node", id, "error", err)
}

func (c *Coordinator) writeSevered(ctx context.Context, id resource.NodeID, detail string) error {
	key := record.NodeSpecKey(id)
	kv, found, _, err := c.store.Get(ctx, key)
	if err != nil || !found {
		return err
	}
	spec, err := record.Decode[record.NodeSpec](key, kv.Value)
	if err != nil {
		return err
	}
	spec.Unschedulable = true
	spec.Violation = &record.Violation{Reason: lead.ViolationPanic, Detail: lead.Clip(detail), At: post.Stamp(time.Now()), Severed: true}
	value, err := record.Encode(spec)
	if err != nil {
		return err
	}
	result, err := c.store.Txn(ctx, record.Txn{If: []record.Compare{record.ModRevIs(key, kv.ModRev)}, Then: []record.Op{record.Put(key, value)}})
	if err == nil && !result.Succeeded {
		err = fmt.Errorf("%s changed", key)
	}
	return err
}
