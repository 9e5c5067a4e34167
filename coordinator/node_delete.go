package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// DeleteNode implements service.Nodes: a node that has left for good is forgotten.
// It is refused while its agent sends heartbeats, while there is a grant on the
// node, while an ended transaction may still run there, and while a quarantine
// is being ended.
func (c *Coordinator) DeleteNode(ctx context.Context, name string) (*api.Node, error) {
	return ask[*api.Node](ctx, c, lead.DeleteNode{Node: resource.NodeID(name), Require: service.PreconditionsOf(ctx)})
}
