package sdk

import (
	"context"

	"github.com/musterd/muster/api"
)

// Tenants are the owners of namespaces.
type Tenants struct {
	quotaDocuments[api.Tenant]
}

// Tenants selects the tenants.
func (c *Client) Tenants() Tenants {
	return Tenants{quotaDocuments[api.Tenant]{
		objects{client: c, path: collection("", "tenants")}, followed[api.Tenant](c, "tenants", ""), func(t *api.Tenant) string { return t.Metadata.Name },
	}}
}

// List returns tenants ordered by name. Everybody but an admin gets the own tenant
// alone.
func (t Tenants) List(ctx context.Context, o ListOptions) (*api.TenantList, error) {
	return listAll(ctx, t.objects, o, func(l *api.TenantList) (*api.ListMeta, *[]api.Tenant) { return &l.Metadata, &l.Items })
}

// Namespaces are the owners and the rules of namespaces. A namespace need not have
// such an object.
type Namespaces struct {
	quotaDocuments[api.Namespace]
}

// Namespaces selects the namespaces.
func (c *Client) Namespaces() Namespaces {
	return Namespaces{quotaDocuments[api.Namespace]{
		objects{client: c, path: collection("", "namespaces")}, followed[api.Namespace](c, "namespaces", ""), func(n *api.Namespace) string { return n.Metadata.Name },
	}}
}

// List returns namespaces ordered by name. Everybody but an admin gets those of the
// own tenant alone.
func (n Namespaces) List(ctx context.Context, o ListOptions) (*api.NamespaceList, error) {
	return listAll(ctx, n.objects, o, func(l *api.NamespaceList) (*api.ListMeta, *[]api.Namespace) { return &l.Metadata, &l.Items })
}
