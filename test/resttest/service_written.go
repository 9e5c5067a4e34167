package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// written implements service.Objects of one kind.
type written[T any] struct {
	objects.Written[T]
	c *Cluster
}

// Queues implements service.Written.
func (c *Cluster) Queues() service.Objects[api.Queue] {
	return written[api.Queue]{objects.WrittenQueues, c}
}

// PriorityClasses implements service.Written.
func (c *Cluster) PriorityClasses() service.Objects[api.PriorityClass] {
	return written[api.PriorityClass]{objects.WrittenClasses, c}
}

// Put implements service.Objects. The answer is the object as reads show it.
func (w written[T]) Put(ctx context.Context, o *T, create bool) (*T, error) {
	if status := w.Validate(o); status != nil {
		return nil, status
	}
	if _, err := ask[*T](ctx, w.c, lead.Put[T]{Object: o, Create: create}); err != nil {
		return nil, err
	}
	return w.Get(ctx, w.Rules.Meta(o).Name)
}

// Get implements service.Objects.
func (w written[T]) Get(ctx context.Context, name string) (*T, error) {
	return see(ctx, w.c, func(v *objects.View) (*T, *api.Status) { return w.Find(v, name) })
}

// List implements service.Objects.
func (w written[T]) List(ctx context.Context) (items []T, meta api.ListMeta, err error) {
	_, err = see(ctx, w.c, func(v *objects.View) (any, *api.Status) {
		items, meta = w.Written.List(v)
		return nil, nil
	})
	return items, meta, err
}

// Delete implements service.Objects. The result is the object as it was.
func (w written[T]) Delete(ctx context.Context, name string, require api.Preconditions) (*T, error) {
	before, missing := w.Get(ctx, name)
	if _, err := ask[*T](ctx, w.c, lead.Delete[T]{Name: name, Require: require}); err != nil {
		return nil, err
	}
	return before, missing
}
