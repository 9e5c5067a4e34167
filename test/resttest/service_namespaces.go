package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// PutTenant implements service.Spaces.
func (c *Cluster) PutTenant(ctx context.Context, t *api.Tenant, create bool) (*api.Tenant, error) {
	if status := t.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.Tenant](ctx, c, lead.Put[api.Tenant]{Object: t, Create: create})
}

// GetTenant implements service.Spaces.
func (c *Cluster) GetTenant(ctx context.Context, name string) (*api.Tenant, error) {
	return see(ctx, c, func(v *objects.View) (*api.Tenant, *api.Status) {
		s, found := v.Tenant(name)
		if !found {
			return nil, edit.Tenants.NotFound(name)
		}
		return s.Copy(), nil
	})
}

// ListTenants implements service.Spaces.
func (c *Cluster) ListTenants(ctx context.Context) (*api.TenantList, error) {
	return see(ctx, c, func(v *objects.View) (*api.TenantList, *api.Status) {
		items, version := shown.List(v.Floor(), v.Tenants())
		return &api.TenantList{Kind: "TenantList", Metadata: version, Items: items}, nil
	})
}

// DeleteTenant implements service.Spaces.
func (c *Cluster) DeleteTenant(ctx context.Context, name string, require api.Preconditions) (*api.Tenant, error) {
	return ask[*api.Tenant](ctx, c, lead.Delete[api.Tenant]{Name: name, Require: require})
}

// PutNamespace implements service.Spaces.
func (c *Cluster) PutNamespace(ctx context.Context, n *api.Namespace, create bool) (*api.Namespace, error) {
	if status := n.Validate(); status != nil {
		return nil, status
	}
	got, err := ask[*api.Namespace](ctx, c, lead.Put[api.Namespace]{Object: n, Create: create})
	if err != nil {
		return nil, err
	}
	return see(ctx, c, func(v *objects.View) (*api.Namespace, *api.Status) {
		if s, found := v.Namespace(got.Metadata.Name); found {
			got.Status = s.Object.Status
		}
		return got, nil
	})
}

// GetNamespace implements service.Spaces.
func (c *Cluster) GetNamespace(ctx context.Context, name string) (*api.Namespace, error) {
	return see(ctx, c, func(v *objects.View) (*api.Namespace, *api.Status) {
		s, found := v.Namespace(name)
		if !found {
			return nil, edit.Namespaces.NotFound(name)
		}
		return s.Copy(), nil
	})
}

// ListNamespaces implements service.Spaces.
func (c *Cluster) ListNamespaces(ctx context.Context) (*api.NamespaceList, error) {
	return see(ctx, c, func(v *objects.View) (*api.NamespaceList, *api.Status) {
		items, version := shown.List(v.Floor(), v.Namespaces())
		return &api.NamespaceList{Kind: "NamespaceList", Metadata: version, Items: items}, nil
	})
}

// DeleteNamespace implements service.Spaces.
func (c *Cluster) DeleteNamespace(ctx context.Context, name string, require api.Preconditions) (*api.Namespace, error) {
	return ask[*api.Namespace](ctx, c, lead.Delete[api.Namespace]{Name: name, Require: require})
}
