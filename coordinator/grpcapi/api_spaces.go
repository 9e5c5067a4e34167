package grpcapi

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// everywhere refuses a watch of a kind whose objects are in no namespace.
func (a *API) everywhere(ctx context.Context, kind service.Kind, r *apiv1.WatchRequest) *api.Status {
	return a.all(ctx, service.VerbWatch, kind, r.GetNamespace())
}

// inNoNamespace refuses a namespace for a kind whose objects are in none.
func inNoNamespace(namespace string) *api.Status {
	if namespace == "" {
		return nil
	}
	return api.Errorf(http.StatusBadRequest, "namespace: %q: objects of this kind are in none", service.Clip(namespace))
}

// ownTenant restricts a selection to the caller's tenant, nil for a caller that
// sees all tenants.
func ownTenant(ctx context.Context) func(*service.Selection) {
	return own(ctx, service.KindTenants)
}

// ownNamespaces is as ownTenant.
func ownNamespaces(ctx context.Context) func(*service.Selection) {
	return own(ctx, service.KindNamespaces)
}

func own(ctx context.Context, kind service.Kind) func(*service.Selection) {
	p := caller(ctx)
	if !service.Filters(p, kind) {
		return nil
	}
	return func(s *service.Selection) { s.Fields = s.Fields.Own(p, kind) }
}

// tenants implements muster.api.v1.Tenants.
type tenants struct {
	apiv1.UnimplementedTenantsServer
	a *API
}

func (s tenants) served() served[api.Tenant, *apiv1.Tenant] {
	return served[api.Tenant, *apiv1.Tenant]{
		Documents: service.TenantDocuments(s.a.Service), a: s.a, kind: service.KindTenants, empty: func() *apiv1.Tenant { return new(apiv1.Tenant) }, space: byName,
	}
}

// Create implements apiv1.TenantsServer.
func (s tenants) Create(ctx context.Context, r *apiv1.Tenant) (*apiv1.Tenant, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.TenantsServer.
func (s tenants) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.Tenant, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.TenantsServer.
func (s tenants) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.TenantList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindTenants, r.GetNamespace()), service.ListedTenants, r,
		func(q *service.Selection) ([]api.Tenant, api.ListMeta, string, error) {
			if narrow := ownTenant(ctx); narrow != nil {
				narrow(q)
			}
			got, err := s.a.Service.ListTenants(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedTenants, q, got.Items, got.Metadata)
		}, func() *apiv1.Tenant { return new(apiv1.Tenant) })
	if err != nil {
		return nil, err
	}
	return &apiv1.TenantList{Kind: "TenantList", Metadata: meta, Items: items}, nil
}

// Update implements apiv1.TenantsServer.
func (s tenants) Update(ctx context.Context, r *apiv1.Tenant) (*apiv1.Tenant, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.TenantsServer.
func (s tenants) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.Tenant, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.TenantsServer.
func (s tenants) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.Tenant, error) {
	return s.served().remove(ctx, r)
}

// namespaces implements muster.api.v1.Namespaces.
type namespaces struct {
	apiv1.UnimplementedNamespacesServer
	a *API
}

func (s namespaces) served() served[api.Namespace, *apiv1.Namespace] {
	return served[api.Namespace, *apiv1.Namespace]{
		Documents: service.NamespaceDocuments(s.a.Service), a: s.a, kind: service.KindNamespaces, empty: func() *apiv1.Namespace { return new(apiv1.Namespace) }, space: byName,
	}
}

// Create implements apiv1.NamespacesServer.
func (s namespaces) Create(ctx context.Context, r *apiv1.Namespace) (*apiv1.Namespace, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.NamespacesServer.
func (s namespaces) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.Namespace, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.NamespacesServer.
func (s namespaces) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.NamespaceList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindNamespaces, r.GetNamespace()), service.ListedNamespaces, r,
		func(q *service.Selection) ([]api.Namespace, api.ListMeta, string, error) {
			if narrow := ownNamespaces(ctx); narrow != nil {
				narrow(q)
			}
			got, err := s.a.Service.ListNamespaces(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedNamespaces, q, got.Items, got.Metadata)
		}, func() *apiv1.Namespace { return new(apiv1.Namespace) })
	if err != nil {
		return nil, err
	}
	return &apiv1.NamespaceList{Kind: "NamespaceList", Metadata: meta, Items: items}, nil
}

// Update implements apiv1.NamespacesServer.
func (s namespaces) Update(ctx context.Context, r *apiv1.Namespace) (*apiv1.Namespace, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.NamespacesServer.
func (s namespaces) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.Namespace, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.NamespacesServer.
func (s namespaces) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.Namespace, error) {
	return s.served().remove(ctx, r)
}
