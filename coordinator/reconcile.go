package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
)

// ReconcileNode implements service.Nodes.
func (c *Coordinator) ReconcileNode(ctx context.Context, name string, o api.ReconcileOptions) (*api.Reconciliation, error) {
	return ask[*api.Reconciliation](ctx, c, lead.ReconcileNode{Node: resource.NodeID(name), Options: o})
}
