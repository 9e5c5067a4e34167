package grpcapi

import (
	"context"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// eventsAPI serves apiv1.Events.
type eventsAPI struct {
	apiv1.UnimplementedEventsServer
	a *API
}

// Get implements apiv1.EventsServer. Without a namespace it finds events of nodes.
func (s eventsAPI) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.Event, error) {
	status := s.a.on(ctx, service.VerbGet, service.KindEvents, r.GetNamespace(), r.GetName())
	ctx, odd := reading(ctx, r)
	if status := first(status, odd); status != nil {
		return nil, status
	}
	got, err := s.a.Service.GetEvent(ctx, r.GetNamespace(), r.GetName())
	return answered(got, err, new(apiv1.Event))
}

// List implements apiv1.EventsServer.
func (s eventsAPI) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.EventList, error) {
	items, meta, err := page(ctx, s.a, s.a.may(ctx, service.VerbList, service.KindEvents, r.GetNamespace()), service.ListedEvents, r,
		func(q *service.Selection) ([]api.Event, api.ListMeta, string, error) {
			return service.ListEvents(ctx, s.a.Service, r.GetNamespace(), q)
		}, func() *apiv1.Event { return new(apiv1.Event) })
	if err != nil {
		return nil, err
	}
	return &apiv1.EventList{Kind: api.KindEvent + "List", Metadata: meta, Items: items}, nil
}

var watchedEvents = watched[api.Event, *apiv1.Event, apiv1.EventWatchEvent]{
	objects.Events, service.ListedEvents, func() *apiv1.Event { return new(apiv1.Event) },
	func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Event) *apiv1.EventWatchEvent {
		return &apiv1.EventWatchEvent{Type: of, Id: id, Object: o}
	},
}

// Watch implements apiv1.EventsServer.
func (s eventsAPI) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[apiv1.EventWatchEvent]) error {
	return watchedEvents.serve(s.a, s.a.may(out.Context(), service.VerbWatch, service.KindEvents, r.GetNamespace()), r, nil, out)
}
