package grpcapi

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// This file serves the kinds of package service's Written.

// messageOf is the message of a document.
type messageOf interface {
	proto.Message
	GetMetadata() *apiv1.ObjectMeta
}

// written implements the methods of the gRPC service of one kind: M is its message, L
// that of its list and E that of its events.
type written[T api.QuotaDocument, M messageOf, L, E any] struct {
	a *API
	service.WrittenKind[T]
	watched[T, M, E]
	list func(kind string, meta *apiv1.ListMeta, items []M) *L
}

func (w written[T, M, L, E]) served() served[T, M] {
	return served[T, M]{Documents: w.Documents(w.a.Service), a: w.a, kind: w.WrittenKind.Kind, empty: w.empty, space: inNone}
}

// Create makes an object.
func (w written[T, M, L, E]) Create(ctx context.Context, m M) (M, error) {
	return w.served().create(ctx, m, m.GetMetadata())
}

// Get returns an object.
func (w written[T, M, L, E]) Get(ctx context.Context, r *apiv1.GetRequest) (M, error) {
	return w.served().get(ctx, r)
}

// List returns a page of the objects.
func (w written[T, M, L, E]) List(ctx context.Context, r *apiv1.ListRequest) (*L, error) {
	items, meta, err := page(ctx, w.a, w.a.all(ctx, service.VerbList, w.WrittenKind.Kind, r.GetNamespace()), w.Listed, r,
		func(q *service.Selection) ([]T, api.ListMeta, string, error) {
			all, meta, err := w.WrittenKind.List(ctx, w.a.Service)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(w.Listed, q, all, meta)
		}, w.empty)
	if err != nil {
		return nil, err
	}
	return w.list(w.Document+"List", meta, items), nil
}

// Watch follows the changes.
func (w written[T, M, L, E]) Watch(r *apiv1.WatchRequest, out grpc.ServerStreamingServer[E]) error {
	return w.watched.serve(w.a, w.a.everywhere(out.Context(), w.WrittenKind.Kind, r), r, nil, out)
}

// Update replaces an object, or creates it.
func (w written[T, M, L, E]) Update(ctx context.Context, m M) (M, error) {
	return w.served().put(ctx, m, m.GetMetadata())
}

// Patch changes an object by a merge patch.
func (w written[T, M, L, E]) Patch(ctx context.Context, r *apiv1.PatchRequest) (M, error) {
	return w.served().patch(ctx, r)
}

// Delete removes an object.
func (w written[T, M, L, E]) Delete(ctx context.Context, r *apiv1.RemoveRequest) (M, error) {
	return w.served().remove(ctx, r)
}

// queues implements muster.api.v1.Queues.
type queues struct {
	apiv1.UnsafeQueuesServer // all methods are those of written
	written[api.Queue, *apiv1.Queue, apiv1.QueueList, apiv1.QueueWatchEvent]
}

func newQueues(a *API) queues {
	return queues{written: written[api.Queue, *apiv1.Queue, apiv1.QueueList, apiv1.QueueWatchEvent]{
		a, service.WrittenQueues,
		watched[api.Queue, *apiv1.Queue, apiv1.QueueWatchEvent]{
			objects.Queues, service.WrittenQueues.Listed, func() *apiv1.Queue { return new(apiv1.Queue) },
			func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.Queue) *apiv1.QueueWatchEvent {
				return &apiv1.QueueWatchEvent{Type: of, Id: id, Object: o}
			},
		},
		func(kind string, meta *apiv1.ListMeta, items []*apiv1.Queue) *apiv1.QueueList {
			return &apiv1.QueueList{Kind: kind, Metadata: meta, Items: items}
		},
	}}
}

// priorityClasses implements muster.api.v1.PriorityClasses.
type priorityClasses struct {
	apiv1.UnsafePriorityClassesServer // all methods are those of written
	written[api.PriorityClass, *apiv1.PriorityClass, apiv1.PriorityClassList, apiv1.PriorityClassWatchEvent]
}

func newPriorityClasses(a *API) priorityClasses {
	return priorityClasses{written: written[api.PriorityClass, *apiv1.PriorityClass, apiv1.PriorityClassList, apiv1.PriorityClassWatchEvent]{
		a, service.WrittenClasses,
		watched[api.PriorityClass, *apiv1.PriorityClass, apiv1.PriorityClassWatchEvent]{
			objects.PriorityClasses, service.WrittenClasses.Listed, func() *apiv1.PriorityClass { return new(apiv1.PriorityClass) },
			func(of apiv1.WatchEventType, id *apiv1.WatchID, o *apiv1.PriorityClass) *apiv1.PriorityClassWatchEvent {
				return &apiv1.PriorityClassWatchEvent{Type: of, Id: id, Object: o}
			},
		},
		func(kind string, meta *apiv1.ListMeta, items []*apiv1.PriorityClass) *apiv1.PriorityClassList {
			return &apiv1.PriorityClassList{Kind: kind, Metadata: meta, Items: items}
		},
	}}
}
