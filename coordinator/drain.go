package coordinator

import (
	"cmp"
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// PreemptAllocation implements rest.Evictions.
func (c *Coordinator) PreemptAllocation(ctx context.Context, namespace string, p api.PreemptionRequest) (*api.Preemption, error) {
	reason := cmp.Or(p.Reason, "evicted by an operator")
	if p.InitiatedBy != "" {
		reason += " (" + p.InitiatedBy + ")"
	}
	e, err := c.evict(ctx, EvictOptions{Namespace: namespace, Name: p.TargetAllocation, GraceSeconds: p.GracePeriodSeconds, Reason: reason})
	if err != nil {
		return nil, err
	}
	return &api.Preemption{
		PreemptionID: string(e.tx), TargetAllocation: p.TargetAllocation, Unit: e.unit, Status: "Initiated",
		GracePeriodEnds: e.until.UTC().Format(time.RFC3339), ResourcesFreed: api.Amounts(e.freed),
	}, nil
}

// DrainNode implements rest.Evictions: it cordons the node, gives notice to
// every unit with a member there, and answers once all that is durable. A
// gang's members on other nodes leave with it.
func (c *Coordinator) DrainNode(ctx context.Context, name string, o api.DrainOptions) (*api.Drain, error) {
	if _, err := c.SetUnschedulable(ctx, name, true); err != nil {
		return nil, err
	}
	notice := txn.EvictAsked{GraceSeconds: defaultGrace, Reason: cmp.Or(o.Reason, "node "+name+" is drained")}
	if o.GracePeriodSeconds != nil {
		notice.GraceSeconds = *o.GracePeriodSeconds
	}
	got, err := ask[drained](ctx, c, drainNode{resource.NodeID(name), notice})
	if err != nil {
		return nil, err
	}
	d := &api.Drain{Status: "Drained"}
	if got.coming+got.evicted > 0 {
		d.Status, d.AllocationsToEvict = "Draining", got.coming+got.evicted
		d.Progress.Pending, d.Progress.Evicted = got.coming, got.evicted
	}
	if !got.until.IsZero() {
		d.EstimatedCompletionTime = got.until.UTC().Format(time.RFC3339)
	}
	return d, nil
}
