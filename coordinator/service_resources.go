package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// PutResource implements service.Resources. The answer is the object as reads show it,
// with the fields that were left out.
func (c *Coordinator) PutResource(ctx context.Context, r *api.Resource, create bool) (*api.Resource, error) {
	if status := r.Validate(); status != nil {
		return nil, status
	}
	written, err := ask[*api.Resource](ctx, c, lead.Put[api.Resource]{Object: r, Create: create})
	if err != nil {
		return nil, err
	}
	read, err := c.GetResource(ctx, r.Metadata.Name)
	return sameVersion(edit.Resources.Meta, written, read, err), nil
}

// GetResource implements service.Resources.
func (c *Coordinator) GetResource(ctx context.Context, name string) (*api.Resource, error) {
	return look(ctx, c, func(v *objects.View) (*api.Resource, *api.Status) {
		s, found := v.Resource(name)
		if !found {
			return nil, edit.Resources.NotFound(name)
		}
		return s.Copy(), nil
	})
}

// ListResources implements service.Resources.
func (c *Coordinator) ListResources(ctx context.Context) (*api.ResourceList, error) {
	return look(ctx, c, func(v *objects.View) (*api.ResourceList, *api.Status) {
		items, version := shown.List(v.Floor(), v.Resources())
		return &api.ResourceList{Kind: api.KindResource + "List", Metadata: version, Items: items}, nil
	})
}

// DeleteResource implements service.Resources. The result is the object as it was.
func (c *Coordinator) DeleteResource(ctx context.Context, name string, require api.Preconditions) (*api.Resource, error) {
	before, failed := c.GetResource(ctx, name)
	ended, err := ask[*api.Resource](ctx, c, lead.Delete[api.Resource]{Name: name, Require: require})
	if err != nil {
		return nil, err
	}
	return sameVersion(edit.Resources.Meta, ended, before, failed), nil
}
