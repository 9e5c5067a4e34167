package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// ListNodes implements service.Nodes.
func (c *Coordinator) ListNodes(ctx context.Context) (*api.NodeList, error) {
	return seeNodes(ctx, c, func(i shown.Index) (*api.NodeList, *api.Status) {
		list := &api.NodeList{Kind: "NodeList", Metadata: shown.ListMeta(i.Newest()), Items: []api.Node{}}
		for n := range i.Nodes() {
			list.Items = append(list.Items, *n.Show())
		}
		return list, nil
	})
}

// GetNode implements service.Nodes.
func (c *Coordinator) GetNode(ctx context.Context, name string) (*api.Node, error) {
	return seeNodes(ctx, c, func(i shown.Index) (*api.Node, *api.Status) {
		n, found := i.Node(resource.NodeID(name))
		if !found {
			return nil, api.Errorf(404, "node %s not found", name)
		}
		return n.Show(), nil
	})
}
