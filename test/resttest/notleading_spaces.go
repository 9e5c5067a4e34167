package resttest

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// ReleaseAllocations implements service.Service.
func (NotLeading) ReleaseAllocations(context.Context, string, service.Release) (*api.BulkRelease, error) {
	return nil, notLeading()
}

// RenameQuotaNode implements service.Service.
func (NotLeading) RenameQuotaNode(context.Context, string, api.QuotaRename) (*api.QuotaTree, error) {
	return nil, notLeading()
}

// ClusterUtilization implements service.Service.
func (NotLeading) ClusterUtilization(context.Context) (*api.ClusterUtilization, error) {
	return nil, notLeading()
}

// QueueUsage implements service.Service.
func (NotLeading) QueueUsage(context.Context, service.Principal) (*api.QueueUsage, error) {
	return nil, notLeading()
}

// TenantUsage implements service.Service.
func (NotLeading) TenantUsage(context.Context, resource.TenantID, time.Duration, string) (*api.TenantUsage, error) {
	return nil, notLeading()
}

// PutTenant implements service.Service.
func (NotLeading) PutTenant(context.Context, *api.Tenant, bool) (*api.Tenant, error) {
	return nil, notLeading()
}

// GetTenant implements service.Service.
func (NotLeading) GetTenant(context.Context, string) (*api.Tenant, error) {
	return nil, notLeading()
}

// ListTenants implements service.Service.
func (NotLeading) ListTenants(context.Context) (*api.TenantList, error) {
	return nil, notLeading()
}

// DeleteTenant implements service.Service.
func (NotLeading) DeleteTenant(context.Context, string, api.Preconditions) (*api.Tenant, error) {
	return nil, notLeading()
}

// PutNamespace implements service.Service.
func (NotLeading) PutNamespace(context.Context, *api.Namespace, bool) (*api.Namespace, error) {
	return nil, notLeading()
}

// GetNamespace implements service.Service.
func (NotLeading) GetNamespace(context.Context, string) (*api.Namespace, error) {
	return nil, notLeading()
}

// ListNamespaces implements service.Service.
func (NotLeading) ListNamespaces(context.Context) (*api.NamespaceList, error) {
	return nil, notLeading()
}

// DeleteNamespace implements service.Service.
func (NotLeading) DeleteNamespace(context.Context, string, api.Preconditions) (*api.Namespace, error) {
	return nil, notLeading()
}

// PutResource implements service.Service.
func (NotLeading) PutResource(context.Context, *api.Resource, bool) (*api.Resource, error) {
	return nil, notLeading()
}

// GetResource implements service.Service.
func (NotLeading) GetResource(context.Context, string) (*api.Resource, error) {
	return nil, notLeading()
}

// ListResources implements service.Service.
func (NotLeading) ListResources(context.Context) (*api.ResourceList, error) {
	return nil, notLeading()
}

// DeleteResource implements service.Service.
func (NotLeading) DeleteResource(context.Context, string, api.Preconditions) (*api.Resource, error) {
	return nil, notLeading()
}

// Queues implements service.Service.
func (NotLeading) Queues() service.Objects[api.Queue] { return notServed[api.Queue]{} }

// PriorityClasses implements service.Service.
func (NotLeading) PriorityClasses() service.Objects[api.PriorityClass] {
	return notServed[api.PriorityClass]{}
}

// notServed are the objects of a kind that nobody serves.
type notServed[T any] struct{}

func (notServed[T]) Put(context.Context, *T, bool) (*T, error) { return nil, notLeading() }
func (notServed[T]) Get(context.Context, string) (*T, error)   { return nil, notLeading() }
func (notServed[T]) List(context.Context) ([]T, api.ListMeta, error) {
	return nil, api.ListMeta{}, notLeading()
}
func (notServed[T]) Delete(context.Context, string, api.Preconditions) (*T, error) {
	return nil, notLeading()
}
