package grpcapi

import (
	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// This file has the watch of each kind. A new kind adds its row and its method.

var watchedAllocations = watched[api.Allocation, *apiv1.Allocation, apiv1.AllocationWatchEvent]{
	objects.Allocations, service.ListedAllocations, func() *apiv1.Allocation { return new(apiv1.Allocation) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Allocation) *apiv1.AllocationWatchEvent {
		return &apiv1.AllocationWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedJobs = watched[api.Job, *apiv1.Job, apiv1.JobWatchEvent]{
	objects.Jobs, service.ListedJobs, func() *apiv1.Job { return new(apiv1.Job) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Job) *apiv1.JobWatchEvent {
		return &apiv1.JobWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedNodes = watched[api.Node, *apiv1.Node, apiv1.NodeWatchEvent]{
	objects.Nodes, service.ListedNodes, func() *apiv1.Node { return new(apiv1.Node) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Node) *apiv1.NodeWatchEvent {
		return &apiv1.NodeWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedResourceQuotas = watched[api.ResourceQuota, *apiv1.ResourceQuota, apiv1.ResourceQuotaWatchEvent]{
	objects.ResourceQuotas, service.ListedResourceQuotas, func() *apiv1.ResourceQuota { return new(apiv1.ResourceQuota) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.ResourceQuota) *apiv1.ResourceQuotaWatchEvent {
		return &apiv1.ResourceQuotaWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedQuotaTrees = watched[api.QuotaTree, *apiv1.QuotaTree, apiv1.QuotaTreeWatchEvent]{
	objects.QuotaTrees, service.ListedQuotaTrees, func() *apiv1.QuotaTree { return new(apiv1.QuotaTree) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.QuotaTree) *apiv1.QuotaTreeWatchEvent {
		return &apiv1.QuotaTreeWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedQuotaForests = watched[api.QuotaForest, *apiv1.QuotaForest, apiv1.QuotaForestWatchEvent]{
	objects.QuotaForests, service.ListedQuotaForests, func() *apiv1.QuotaForest { return new(apiv1.QuotaForest) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.QuotaForest) *apiv1.QuotaForestWatchEvent {
		return &apiv1.QuotaForestWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedQuotaBindings = watched[api.QuotaBinding, *apiv1.QuotaBinding, apiv1.QuotaBindingWatchEvent]{
	objects.QuotaBindings, service.ListedQuotaBindings, func() *apiv1.QuotaBinding { return new(apiv1.QuotaBinding) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.QuotaBinding) *apiv1.QuotaBindingWatchEvent {
		return &apiv1.QuotaBindingWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedTenants = watched[api.Tenant, *apiv1.Tenant, apiv1.TenantWatchEvent]{
	objects.Tenants, service.ListedTenants, func() *apiv1.Tenant { return new(apiv1.Tenant) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Tenant) *apiv1.TenantWatchEvent {
		return &apiv1.TenantWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedNamespaces = watched[api.Namespace, *apiv1.Namespace, apiv1.NamespaceWatchEvent]{
	objects.Namespaces, service.ListedNamespaces, func() *apiv1.Namespace { return new(apiv1.Namespace) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Namespace) *apiv1.NamespaceWatchEvent {
		return &apiv1.NamespaceWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedAccessTokens = watched[api.AccessToken, *apiv1.AccessToken, apiv1.AccessTokenWatchEvent]{
	objects.AccessTokens, service.ListedAccessTokens, func() *apiv1.AccessToken { return new(apiv1.AccessToken) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.AccessToken) *apiv1.AccessTokenWatchEvent {
		return &apiv1.AccessTokenWatchEvent{Type: of, Id: id, Object: o}
	},
}

var watchedRoleBindings = watched[api.RoleBinding, *apiv1.RoleBinding, apiv1.RoleBindingWatchEvent]{
	objects.RoleBindings, service.ListedRoleBindings, func() *apiv1.RoleBinding { return new(apiv1.RoleBinding) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.RoleBinding) *apiv1.RoleBindingWatchEvent {
		return &apiv1.RoleBindingWatchEvent{Type: of, Id: id, Object: o}
	},
}

// Watch implements apiv1.AllocationsServer.
func (s allocations) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.AllocationWatchEvent]) error {
	return watchedAllocations.serve(s.a, s.a.may(out.Context(), service.VerbWatch, service.KindAllocations, r.GetNamespace()), r, nil, out)
}

// Watch implements apiv1.JobsServer.
func (s jobs) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.JobWatchEvent]) error {
	return watchedJobs.serve(s.a, s.a.may(out.Context(), service.VerbWatch, service.KindJobs, r.GetNamespace()), r, nil, out)
}

// Watch implements apiv1.NodesServer.
func (s nodes) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.NodeWatchEvent]) error {
	return watchedNodes.serve(s.a, s.a.everywhere(out.Context(), service.KindNodes, r), r, nil, out)
}

// Watch implements apiv1.ResourceQuotasServer.
func (s resourceQuotas) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.ResourceQuotaWatchEvent]) error {
	return watchedResourceQuotas.serve(s.a, s.a.may(out.Context(), service.VerbWatch, service.KindResourceQuotas, r.GetNamespace()), r, nil, out)
}

// Watch implements apiv1.QuotaTreesServer.
func (s quotaTrees) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.QuotaTreeWatchEvent]) error {
	return watchedQuotaTrees.serve(s.a, s.a.everywhere(out.Context(), service.KindQuotaTrees, r), r, nil, out)
}

// Watch implements apiv1.QuotaForestsServer.
func (s quotaForests) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.QuotaForestWatchEvent]) error {
	return watchedQuotaForests.serve(s.a, s.a.everywhere(out.Context(), service.KindQuotaForests, r), r, nil, out)
}

// Watch implements apiv1.QuotaBindingsServer.
func (s quotaBindings) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.QuotaBindingWatchEvent]) error {
	return watchedQuotaBindings.serve(s.a, s.a.everywhere(out.Context(), service.KindQuotaBindings, r), r, nil, out)
}

// Watch implements apiv1.TenantsServer.
func (s tenants) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.TenantWatchEvent]) error {
	return watchedTenants.serve(s.a, s.a.everywhere(out.Context(), service.KindTenants, r), r, ownTenant(out.Context()), out)
}

// Watch implements apiv1.NamespacesServer.
func (s namespaces) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.NamespaceWatchEvent]) error {
	return watchedNamespaces.serve(s.a, s.a.everywhere(out.Context(), service.KindNamespaces, r), r, ownNamespaces(out.Context()), out)
}

// Watch implements apiv1.AccessTokensServer.
func (s accessTokens) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.AccessTokenWatchEvent]) error {
	return watchedAccessTokens.serve(s.a, s.a.everywhere(out.Context(), service.KindAccessTokens, r), r, ownGrants(out.Context()), out)
}

// Watch implements apiv1.RoleBindingsServer.
func (s roleBindings) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.RoleBindingWatchEvent]) error {
	return watchedRoleBindings.serve(s.a, s.a.everywhere(out.Context(), service.KindRoleBindings, r), r, ownGrants(out.Context()), out)
}
