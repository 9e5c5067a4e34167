package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
)

// FenceNode implements service.Nodes. It returns once the fence is durable; the
// ends that follow from a confirmed death go on by themselves, from one leader
// to the next.
func (c *Coordinator) FenceNode(ctx context.Context, name string, o api.FenceOptions) (*api.Node, error) {
	return ask[*api.Node](ctx, c, lead.FenceNode{Node: resource.NodeID(name), Options: o})
}
