package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// ListNodes implements service.Nodes.
func (c *Coordinator) ListNodes(ctx context.Context) (*api.NodeList, error) {
	return look(ctx, c, func(v *objects.View) (*api.NodeList, *api.Status) {
		list := &api.NodeList{Kind: "NodeList", Metadata: shown.ListMeta(v.Newest()), Items: []api.Node{}}
		for n := range v.Nodes() {
			list.Items = append(list.Items, *n.Show())
		}
		return list, nil
	})
}

// GetNode implements service.Nodes.
func (c *Coordinator) GetNode(ctx context.Context, name string) (*api.Node, error) {
	return look(ctx, c, func(v *objects.View) (*api.Node, *api.Status) {
		n, found := v.Node(resource.NodeID(name))
		if !found {
			return nil, api.Errorf(404, "node %s not found", name)
		}
		return n.Show(), nil
	})
}

// PatchNode implements service.Nodes.
func (c *Coordinator) PatchNode(ctx context.Context, name string, p api.NodePatch) (*api.Node, error) {
	return c.changeNode(ctx, name, lead.PatchNode{Node: resource.NodeID(name), Patch: p})
}

// CreateNode implements service.Nodes.
func (c *Coordinator) CreateNode(ctx context.Context, n *api.Node) (*api.Node, error) {
	return c.changeNode(ctx, n.Metadata.Name, lead.CreateNode{Node: *n})
}

// PatchNodeStatus implements service.Nodes.
func (c *Coordinator) PatchNodeStatus(ctx context.Context, name string, p api.NodeStatusPatch) (*api.Node, error) {
	return c.changeNode(ctx, name, lead.PatchNodeStatus{Node: resource.NodeID(name), Patch: p})
}

// SetUnschedulable cordons a node, or ends that.
func (c *Coordinator) SetUnschedulable(ctx context.Context, name string, unschedulable bool) (*api.Node, error) {
	return c.PatchNode(ctx, name, api.NodePatch{Unschedulable: &unschedulable})
}

// ApproveNode implements service.Nodes: the registered capacity is approved.
func (c *Coordinator) ApproveNode(ctx context.Context, name string, o api.ApproveOptions) (*api.Node, error) {
	return c.changeNode(ctx, name, lead.ApproveNode{Node: resource.NodeID(name), Options: o})
}

// FenceNode implements service.Nodes. It returns once the fence is durable; the
// ends that follow from a confirmed death go on by themselves, from one leader
// to the next.
func (c *Coordinator) FenceNode(ctx context.Context, name string, o api.FenceOptions) (*api.Node, error) {
	return c.changeNode(ctx, name, lead.FenceNode{Node: resource.NodeID(name), Options: o})
}

// changeNode has the leader change a node, and shows the node with the change.
func (c *Coordinator) changeNode(ctx context.Context, name string, r lead.Request) (*api.Node, error) {
	if _, err := ask[lead.NodeChanged](ctx, c, r); err != nil {
		return nil, err
	}
	return c.GetNode(ctx, name)
}

// DeleteNode implements service.Nodes: a node that has left for good is forgotten.
// It is refused while its agent sends heartbeats, while there is a grant on the
// node, while an ended transaction may still run there, and while a quarantine
// is being ended. The result is the node as it was.
func (c *Coordinator) DeleteNode(ctx context.Context, name string, require api.Preconditions) (*api.Node, error) {
	before, missing := c.GetNode(ctx, name)
	if _, err := ask[lead.NodeChanged](ctx, c, lead.DeleteNode{Node: resource.NodeID(name), Require: require}); err != nil {
		return nil, err
	}
	return before, missing
}
