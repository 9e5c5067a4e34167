package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// PutTenant implements service.Spaces.
func (c *Coordinator) PutTenant(ctx context.Context, t *api.Tenant, create bool) (*api.Tenant, error) {
	if status := t.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.Tenant](ctx, c, lead.Put[api.Tenant]{Object: t, Create: create})
}

// GetTenant implements service.Spaces.
func (c *Coordinator) GetTenant(ctx context.Context, name string) (*api.Tenant, error) {
	return look(ctx, c, func(i *objects.View) (*api.Tenant, *api.Status) {
		s, found := i.Tenant(name)
		if !found {
			return nil, edit.Tenants.NotFound(name)
		}
		return s.Copy(), nil
	})
}

// ListTenants implements service.Spaces.
func (c *Coordinator) ListTenants(ctx context.Context) (*api.TenantList, error) {
	return look(ctx, c, func(i *objects.View) (*api.TenantList, *api.Status) {
		items, version := shown.List(i.Floor(), i.Tenants())
		return &api.TenantList{Kind: "TenantList", Metadata: version, Items: items}, nil
	})
}

// DeleteTenant implements service.Spaces.
func (c *Coordinator) DeleteTenant(ctx context.Context, name string, require api.Preconditions) (*api.Tenant, error) {
	return ask[*api.Tenant](ctx, c, lead.Delete[api.Tenant]{Name: name, Require: require})
}

// PutNamespace implements service.Spaces. Units that run or wait keep their tenant.
func (c *Coordinator) PutNamespace(ctx context.Context, n *api.Namespace, create bool) (*api.Namespace, error) {
	if status := n.Validate(); status != nil {
		return nil, status
	}
	got, err := ask[*api.Namespace](ctx, c, lead.Put[api.Namespace]{Object: n, Create: create})
	return c.followOwner(ctx, got, err)
}

// GetNamespace implements service.Spaces.
func (c *Coordinator) GetNamespace(ctx context.Context, name string) (*api.Namespace, error) {
	return look(ctx, c, func(i *objects.View) (*api.Namespace, *api.Status) {
		s, found := i.Namespace(name)
		if !found {
			return nil, edit.Namespaces.NotFound(name)
		}
		return s.Copy(), nil
	})
}

// ListNamespaces implements service.Spaces.
func (c *Coordinator) ListNamespaces(ctx context.Context) (*api.NamespaceList, error) {
	return look(ctx, c, func(i *objects.View) (*api.NamespaceList, *api.Status) {
		items, version := shown.List(i.Floor(), i.Namespaces())
		return &api.NamespaceList{Kind: "NamespaceList", Metadata: version, Items: items}, nil
	})
}

// DeleteNamespace implements service.Spaces.
func (c *Coordinator) DeleteNamespace(ctx context.Context, name string, require api.Preconditions) (*api.Namespace, error) {
	got, err := ask[*api.Namespace](ctx, c, lead.Delete[api.Namespace]{Name: name, Require: require})
	return c.followOwner(ctx, got, err)
}

// followOwner waits until this coordinator's own requests go by the new owner of a
// namespace, and adds the use. The others follow with the next event of their watch.
func (c *Coordinator) followOwner(ctx context.Context, n *api.Namespace, err error) (*api.Namespace, error) {
	if err != nil {
		return n, err
	}
	v, late := c.follower.Fresh(ctx)
	if late != nil {
		c.log.Debug("owner_not_followed_yet", "namespace", n.Metadata.Name, "error", late)
		return n, nil
	}
	if s, found := v.Namespace(n.Metadata.Name); found {
		n.Status = s.Object.Status
	}
	return n, nil
}
