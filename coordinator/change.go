package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
)

// PatchNode implements service.Nodes.
func (c *Coordinator) PatchNode(ctx context.Context, name string, p api.NodePatch) (*api.Node, error) {
	return ask[*api.Node](ctx, c, lead.PatchNode{Node: resource.NodeID(name), Patch: p})
}

// CreateNode implements service.Nodes.
func (c *Coordinator) CreateNode(ctx context.Context, n *api.Node) (*api.Node, error) {
	return ask[*api.Node](ctx, c, lead.CreateNode{Node: *n})
}

// PatchNodeStatus implements service.Nodes.
func (c *Coordinator) PatchNodeStatus(ctx context.Context, name string, p api.NodeStatusPatch) (*api.Node, error) {
	return ask[*api.Node](ctx, c, lead.PatchNodeStatus{Node: resource.NodeID(name), Patch: p})
}

// SetUnschedulable cordons a node, or ends that.
func (c *Coordinator) SetUnschedulable(ctx context.Context, name string, unschedulable bool) (*api.Node, error) {
	return c.PatchNode(ctx, name, api.NodePatch{Unschedulable: &unschedulable})
}

// ApproveNode implements service.Nodes: the registered capacity is approved.
func (c *Coordinator) ApproveNode(ctx context.Context, name string, o api.ApproveOptions) (*api.Node, error) {
	return ask[*api.Node](ctx, c, lead.ApproveNode{Node: resource.NodeID(name), Options: o})
}
