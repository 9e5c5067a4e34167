package coordinator

import (
	"cmp"
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// PreemptAllocation implements service.Evictions.
func (c *Coordinator) PreemptAllocation(ctx context.Context, namespace string, p api.PreemptionRequest) (*api.Preemption, error) {
	service.Names(ctx, namespace, p.TargetAllocation)
	reason := record.AskedFor(cmp.Or(p.Reason, "evicted by an operator"), p.InitiatedBy)
	e, err := c.evict(ctx, lead.EvictOptions{Namespace: namespace, Name: p.TargetAllocation, GraceSeconds: p.GracePeriodSeconds, Reason: reason})
	if err != nil {
		return nil, err
	}
	return &api.Preemption{
		PreemptionID: string(e.Tx), TargetAllocation: p.TargetAllocation, Unit: e.Unit, Status: "Initiated",
		GracePeriodEnds: e.Until.UTC().Format(time.RFC3339), ResourcesFreed: api.AmountsAs(e.Freed, e.Requested),
	}, nil
}

// DrainNode implements service.Evictions: it cordons the node, gives notice to
// every unit with a member there, and answers once all that is durable. A
// gang's members on other nodes leave with it.
func (c *Coordinator) DrainNode(ctx context.Context, name string, o api.DrainOptions) (*api.Drain, error) {
	notice := txn.EvictAsked{GraceSeconds: lead.DefaultGrace, Reason: cmp.Or(o.Reason, "node "+name+" is drained")}
	if o.GracePeriodSeconds != nil {
		notice.GraceSeconds = *o.GracePeriodSeconds
	}
	return ask[*api.Drain](ctx, c, lead.DrainNode{Node: resource.NodeID(name), Notice: notice})
}
