package coordinator

import (
	"context"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// Evict ends an allocation under notice: all members of its unit. It returns
// once EVICTING is durable, with the transaction and the store's revision; for
// a unit that is evicted already, at once. An evicted allocation is Preempted,
// a job's unit goes back to its place in the queue.
//
// Errors are *api.Status: 404 for an allocation that is not there, or not on
// Node; 409 for one that does not run.
func (c *Coordinator) Evict(ctx context.Context, o lead.EvictOptions) (resource.TxID, resource.Revision, error) {
	e, err := c.evict(ctx, o)
	if err != nil {
		return "", 0, err
	}
	return e.Tx, e.Revision, nil
}

func (c *Coordinator) evict(ctx context.Context, o lead.EvictOptions) (lead.Eviction, error) {
	notice := txn.EvictAsked{GraceSeconds: lead.DefaultGrace, Reason: "evicted by an operator"}
	if o.GraceSeconds != nil {
		notice.GraceSeconds = *o.GraceSeconds
	}
	if o.Reason != "" {
		notice.Reason = o.Reason
	}
	return ask[lead.Eviction](ctx, c, lead.EvictUnit{Options: o, Notice: notice})
}

// EvictFor serves muster.v1.Coordinator/Evict.
func (c *Coordinator) EvictFor(ctx context.Context, e rpc.Eviction) (resource.TxID, resource.Revision, error) {
	if e.Reason == "" {
		e.Reason = "evicted at node " + string(e.Node)
	}
	return c.Evict(ctx, lead.EvictOptions{
		Namespace: e.Namespace, Name: e.Name, Tx: e.Tx, Node: e.Node, GraceSeconds: e.GraceSeconds, Reason: e.Reason,
	})
}
