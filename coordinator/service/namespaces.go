package service

import (
	"cmp"
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Spaces are tenants, and namespaces with an object. Objects are changed under
// optimistic concurrency, as those of Quotas are.
type Spaces interface {
	// PutTenant creates a tenant (create: refused with 409 where it exists) or
	// replaces it.
	PutTenant(ctx context.Context, t *api.Tenant, create bool) (*api.Tenant, error)
	GetTenant(ctx context.Context, name string) (*api.Tenant, error)
	ListTenants(ctx context.Context) (*api.TenantList, error)
	// DeleteTenant is refused with 409 while namespaces belong to the tenant.
	DeleteTenant(ctx context.Context, name string, require api.Preconditions) (*api.Tenant, error)

	// PutNamespace is as PutTenant. The tenant has to exist, or to bear the name of
	// the namespace; another tenant than before is refused with 409 while work is in
	// the namespace. The change counts at this coordinator when the call returns.
	PutNamespace(ctx context.Context, n *api.Namespace, create bool) (*api.Namespace, error)
	GetNamespace(ctx context.Context, name string) (*api.Namespace, error)
	ListNamespaces(ctx context.Context) (*api.NamespaceList, error)
	// DeleteNamespace is refused with 409 while objects are in the namespace.
	DeleteNamespace(ctx context.Context, name string, require api.Preconditions) (*api.Namespace, error)
}

// TenantDocuments are the documents of that kind.
func TenantDocuments(s Spaces) Documents[api.Tenant] {
	return Documents[api.Tenant]{
		Decode: api.DecodeTenant,
		Meta:   func(t *api.Tenant) *api.ObjectMeta { return &t.Metadata },
		Typed: func(t *api.Tenant) {
			t.APIVersion, t.Kind = cmp.Or(t.APIVersion, api.APIVersion), cmp.Or(t.Kind, api.KindTenant)
		},
		bare:   func(*api.Tenant) {},
		Get:    named(s.GetTenant),
		create: puts(s.PutTenant, true),
		update: puts(s.PutTenant, false),
		Remove: removes(s.DeleteTenant),
	}
}

// NamespaceDocuments are the documents of that kind. A namespace is in no other.
func NamespaceDocuments(s Spaces) Documents[api.Namespace] {
	return Documents[api.Namespace]{
		Decode: api.DecodeNamespace,
		Meta:   func(n *api.Namespace) *api.ObjectMeta { return &n.Metadata },
		Typed: func(n *api.Namespace) {
			n.APIVersion, n.Kind = cmp.Or(n.APIVersion, api.APIVersion), cmp.Or(n.Kind, api.KindNamespace)
		},
		bare:   func(n *api.Namespace) { n.Status = api.NamespaceStatus{} },
		Get:    named(s.GetNamespace),
		create: puts(s.PutNamespace, true),
		update: puts(s.PutNamespace, false),
		Remove: removes(s.DeleteNamespace),
	}
}

var ListedTenants = Listed[api.Tenant]{
	Meta: func(t *api.Tenant) *api.ObjectMeta { return &t.Metadata },
	Fields: map[string]func(*api.Tenant) string{
		"metadata.name": func(t *api.Tenant) string { return t.Metadata.Name },
	},
}

// ListedNamespaces select by the tenant in force, which a namespace may leave out.
var ListedNamespaces = Listed[api.Namespace]{
	Meta: func(n *api.Namespace) *api.ObjectMeta { return &n.Metadata },
	Fields: map[string]func(*api.Namespace) string{
		"metadata.name": func(n *api.Namespace) string { return n.Metadata.Name },
		"spec.tenant":   func(n *api.Namespace) string { return cmp.Or(n.Spec.Tenant, n.Metadata.Name) },
	},
}

// Own is a selector that also wants that an object is the caller's own, for the kinds
// whose lists show everybody their own objects (Filters).
func (s FieldSelector) Own(p Principal, kind Kind) FieldSelector {
	if !Filters(p, kind) {
		return s
	}
	own := func(of func(string) string) bool {
		name, tenant := of("metadata.name"), ""
		if kind == KindNamespaces {
			tenant = of("spec.tenant")
		}
		if kind == KindTenants {
			return p.hasIn(resource.TenantID(name), Tenants, nil)
		}
		return p.hasIn(resource.TenantID(tenant), Tenants, func(g *Grant) bool { return g.covers(name, resource.TenantID(tenant)) })
	}
	return append(s[:len(s):len(s)], fieldRule{where: own})
}
