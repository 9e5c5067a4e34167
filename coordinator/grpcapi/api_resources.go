package grpcapi

import (
	"context"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// resources implements muster.api.v1.Resources.
type resources struct {
	apiv1.UnimplementedResourcesServer
	a *API
}

var watchedResources = watched[api.Resource, *apiv1.Resource, apiv1.ResourceWatchEvent]{
	objects.Resources, service.ListedResources, func() *apiv1.Resource { return new(apiv1.Resource) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Resource) *apiv1.ResourceWatchEvent {
		return &apiv1.ResourceWatchEvent{Type: of, Id: id, Object: o}
	},
}

func (s resources) served() served[api.Resource, *apiv1.Resource] {
	return served[api.Resource, *apiv1.Resource]{
		Documents: service.ResourceDocuments(s.a.Service), a: s.a, kind: service.KindResources, empty: func() *apiv1.Resource { return new(apiv1.Resource) }, space: inNone,
	}
}

// Create implements apiv1.ResourcesServer.
func (s resources) Create(ctx context.Context, r *apiv1.Resource) (*apiv1.Resource, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.ResourcesServer.
func (s resources) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.Resource, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.ResourcesServer.
func (s resources) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.ResourceList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindResources, r.GetNamespace()), service.ListedResources, r,
		func(q *service.Selection) ([]api.Resource, api.ListMeta, string, error) {
			got, err := s.a.Service.ListResources(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedResources, q, got.Items, got.Metadata)
		}, func() *apiv1.Resource { return new(apiv1.Resource) })
	if err != nil {
		return nil, err
	}
	return &apiv1.ResourceList{Kind: api.KindResource + "List", Metadata: meta, Items: items}, nil
}

// Watch implements apiv1.ResourcesServer.
func (s resources) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.ResourceWatchEvent]) error {
	return watchedResources.serve(s.a, s.a.everywhere(out.Context(), service.KindResources, r), r, nil, out)
}

// Update implements apiv1.ResourcesServer.
func (s resources) Update(ctx context.Context, r *apiv1.Resource) (*apiv1.Resource, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.ResourcesServer.
func (s resources) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.Resource, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.ResourcesServer.
func (s resources) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.Resource, error) {
	return s.served().remove(ctx, r)
}
