package service

import (
	"context"
	"net/http"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
)

// This file hides the queues that nobody has written from callers without a role in the
// whole cluster: such a queue is there because somebody's work names it, and so its name
// tells of that work.

// queue reports whether the caller may see a queue.
func (s Sight) queue(q *api.Queue) bool {
	return s.all || q.Metadata.UID != "" || q.Metadata.Name == api.DefaultQueue
}

// Queues implements Written.
func (s sighted) Queues() Objects[api.Queue] { return sightedQueues{s.Service.Queues(), s} }

type sightedQueues struct {
	Objects[api.Queue]
	of sighted
}

// Get implements Objects. The refusal is that of a queue that is not there.
func (q sightedQueues) Get(ctx context.Context, name string) (*api.Queue, error) {
	got, err := q.Objects.Get(ctx, name)
	if err == nil && !q.of.sight(ctx).queue(got) {
		return nil, api.Errorf(http.StatusNotFound, "queue %s not found", name)
	}
	return got, err
}

// List implements Objects.
func (q sightedQueues) List(ctx context.Context) ([]api.Queue, api.ListMeta, error) {
	items, meta, err := q.Objects.List(ctx)
	if sight := q.of.sight(ctx); err == nil && !sight.all {
		items = slices.DeleteFunc(slices.Clone(items), func(one api.Queue) bool { return !sight.queue(&one) })
	}
	return items, meta, err
}

// queueEvent is an event of a watch of queues as the caller sees it: a queue that somebody
// writes is added. It is nil where the caller sees neither the queue before nor after.
func (s Sight) queueEvent(e *objects.Event) *objects.Event {
	of, object := objects.Selected(e, func(o any) bool { return s.queue(o.(*api.Queue)) })
	if of == "" {
		return nil
	}
	seen := *e
	seen.Type, seen.Object, seen.JSON = of, object, objects.Encode(object)
	if before, is := e.Before.(*api.Queue); is && !s.queue(before) {
		seen.Before = nil
	}
	return &seen
}
