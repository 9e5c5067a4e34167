package coordinator

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
	c *Coordinator
}

// Queues implements service.Written.
func (c *Coordinator) Queues() service.Objects[api.Queue] {
	return written[api.Queue]{objects.WrittenQueues, c}
}

// PriorityClasses implements service.Written.
func (c *Coordinator) PriorityClasses() service.Objects[api.PriorityClass] {
	return written[api.PriorityClass]{objects.WrittenClasses, c}
}

// Put implements service.Objects. The answer is the object as reads show it, or as it was
// written where it has changed again since, or nothing can be read.
func (w written[T]) Put(ctx context.Context, o *T, create bool) (*T, error) {
	if status := w.Validate(o); status != nil {
		return nil, status
	}
	written, err := ask[*T](ctx, w.c, lead.Put[T]{Object: o, Create: create})
	if err != nil {
		return nil, err
	}
	read, err := w.Get(ctx, w.Rules.Meta(o).Name)
	return sameVersion(w.Rules.Meta, written, read, err), nil
}

// sameVersion is read where it is the version of done, and done itself otherwise: the
// answer of a change that is durable is never that of another version, nor an error.
func sameVersion[T any](meta func(*T) *api.ObjectMeta, done, read *T, err error) *T {
	if err != nil || meta(read).ResourceVersion != meta(done).ResourceVersion || meta(read).UID != meta(done).UID {
		return done
	}
	return read
}

// Get implements service.Objects.
func (w written[T]) Get(ctx context.Context, name string) (*T, error) {
	return look(ctx, w.c, func(v *objects.View) (*T, *api.Status) { return w.Find(v, name) })
}

// List implements service.Objects.
func (w written[T]) List(ctx context.Context) (items []T, meta api.ListMeta, err error) {
	_, err = look(ctx, w.c, func(v *objects.View) (any, *api.Status) {
		items, meta = w.Written.List(v)
		return nil, nil
	})
	return items, meta, err
}

// Delete implements service.Objects. The result is the object as it was.
func (w written[T]) Delete(ctx context.Context, name string, require api.Preconditions) (*T, error) {
	before, failed := w.Get(ctx, name)
	ended, err := ask[*T](ctx, w.c, lead.Delete[T]{Name: name, Require: require})
	if err != nil {
		return nil, err
	}
	return sameVersion(w.Rules.Meta, ended, before, failed), nil
}
