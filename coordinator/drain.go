package coordinator

import (
	"cmp"
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// PreemptAllocation implements service.Evictions.
func (c *Coordinator) PreemptAllocation(ctx context.Context, namespace string, p api.PreemptionRequest) (*api.Preemption, error) {
	reason := cmp.Or(p.Reason, "evicted by an operator")
	if p.InitiatedBy != "" {
		reason += " (" + p.InitiatedBy + ")"
	}
	e, err := c.evict(ctx, lead.EvictOptions{Namespace: namespace, Name: p.TargetAllocation, GraceSeconds: p.GracePeriodSeconds, Reason: reason})
	if err != nil {
		return nil, err
	}
	return &api.Preemption{
		PreemptionID: string(e.Tx), TargetAllocation: p.TargetAllocation, Unit: e.Unit, Status: "Initiated",
		GracePeriodEnds: e.Until.UTC().Format(time.RFC3339), ResourcesFreed: api.Amounts(e.Freed),
	}, nil
}

// DrainNode implements service.Evictions: it cordons the node, gives notice to
// every unit with a member there, and answers once all that is durable. A
// gang's members on other nodes leave with it.
func (c *Coordinator) DrainNode(ctx context.Context, name string, o api.DrainOptions) (*api.Drain, error) {
	if _, err := c.SetUnschedulable(ctx, name, true); err != nil {
		return nil, err
	}
	notice := txn.EvictAsked{GraceSeconds: lead.DefaultGrace, Reason: cmp.Or(o.Reason, "node "+name+" is drained")}
	if o.GracePeriodSeconds != nil {
		notice.GraceSeconds = *o.GracePeriodSeconds
	}
	got, err := ask[lead.Drained](ctx, c, lead.DrainNode{Node: resource.NodeID(name), Notice: notice})
	if err != nil {
		return nil, err
	}
	d := &api.Drain{Status: "Drained"}
	if got.Coming+got.Evicted > 0 {
		d.Status, d.AllocationsToEvict = "Draining", got.Coming+got.Evicted
		d.Progress.Pending, d.Progress.Evicted = got.Coming, got.Evicted
	}
	if !got.Until.IsZero() {
		d.EstimatedCompletionTime = got.Until.UTC().Format(time.RFC3339)
	}
	return d, nil
}
