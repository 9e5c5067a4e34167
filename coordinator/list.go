package coordinator

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// keepFrom is the number of objects from which on a list may be cut by its size.
const keepFrom = 32

// view is all objects that a reader is shown, in the state of service.WithAsOf: without
// it everything that was acknowledged to anybody before the call. Every coordinator
// answers from its own copy of the store's keys; nothing of it enters the leader's loop.
func (c *Coordinator) view(ctx context.Context) (*objects.View, error) {
	return c.viewAsOf(ctx, service.AsOfRead(ctx))
}

// viewAsOf is all objects in a state.
func (c *Coordinator) viewAsOf(ctx context.Context, want service.AsOf) (*objects.View, error) {
	at, _ := c.follower.At()
	if want.Cached || want.NotBefore > 0 && at >= want.NotBefore {
		v, err := c.follower.View()
		return v, c.readRefusal(err)
	}
	v, err := c.follower.Fresh(ctx)
	if err == nil && v.Revision() < want.NotBefore {
		return nil, api.Errorf(http.StatusGone, "resourceVersion %d: the store is at revision %d: it was restored from a backup, or the number is not of this cluster", want.NotBefore, v.Revision())
	}
	return v, c.readRefusal(err)
}

// look shows something of these objects.
func look[T any](ctx context.Context, c *Coordinator, show func(v *objects.View) (T, *api.Status)) (T, error) {
	var none T
	v, err := c.view(ctx)
	if err != nil {
		return none, err
	}
	got, status := show(v)
	if status != nil {
		return none, status
	}
	return got, nil
}

// readRefusal words the reason why this coordinator cannot answer a read.
func (c *Coordinator) readRefusal(err error) error {
	var gone *objects.GoneError
	switch {
	case errors.As(err, &gone):
		return api.Errorf(410, "the list cannot go on: %v", err)
	case !errors.Is(err, follow.ErrBehind):
		return err
	case c.serving() != nil:
		return api.Errorf(503, "%v; ask again", err)
	}
	c.log.Debug("read_not_served", "error", err)
	return c.elsewhere()
}

// viewOf is the view that a page of a list is cut out of.
func viewOf[T any](ctx context.Context, c *Coordinator, k objects.Kind, p service.Page[T]) (*objects.View, error) {
	switch {
	case p.At > 0 && k == objects.Events:
		v := c.follower.KeptView(p.At)
		if v == nil {
			return nil, api.Errorf(http.StatusGone, "the list of events of revision %d cannot go on here: another coordinator began it, or that was more than 30 s ago; list anew", p.At)
		}
		return v, nil
	case p.At > 0:
		v, err := c.follower.ViewAt(ctx, p.At)
		return v, c.readRefusal(err)
	}
	return c.viewAsOf(ctx, p.AsOf)
}

// listed is one page of a list: the objects and its metadata.
type listed[T any] struct {
	items []T
	meta  api.ListMeta
	view  *objects.View
}

// list cuts a page out of the objects of a kind. It takes as long as the page is,
// however many objects there are.
func list[T any](ctx context.Context, c *Coordinator, k objects.Kind, namespace string, p service.Page[T]) (l listed[T], err error) {
	if l.view, err = viewOf(ctx, c, k, p); err != nil {
		return l, err
	}
	l.meta, l.items = shown.ListMeta(l.view.Revision()), []T{}
	scanned := 0
	var last objects.Name
	for item := range l.view.After(k, namespace, l.start(k, namespace, p)) {
		if !strings.HasPrefix(item.Name.Name, p.Prefix) {
			if namespace != "" { // the names are in order
				break
			}
			continue
		}
		if p.Limit > 0 && (len(l.items) == p.Limit || scanned == service.MaxScan) {
			l.meta.Continue = last.Namespace + "/" + last.Name
			break
		}
		scanned++
		last = item.Name
		if v := item.Object().(*T); p.Match == nil || p.Match(v) {
			l.items = append(l.items, *v)
		}
	}
	if p.Limit > 0 && (l.meta.Continue != "" || len(l.items) >= keepFrom) {
		c.follower.Keep(l.view)
	}
	return l, nil
}

// start is the name behind which a page begins.
func (l *listed[T]) start(k objects.Kind, namespace string, p service.Page[T]) objects.Name {
	if p.After == "" && namespace != "" && p.Prefix != "" {
		return objects.Name{Kind: k, Namespace: namespace, Name: p.Prefix}
	}
	return objects.Named(k, p.After)
}

// awaitSettled shows an object, and waits for at most wait until it has settled. show
// returns an object and whether it has settled, or why there is none.
func awaitSettled[T any](ctx context.Context, c *Coordinator, n objects.Name, wait time.Duration, show func(*objects.View) (T, bool, *api.Status)) (T, error) {
	var none T
	v, err := c.view(ctx)
	if err != nil {
		return none, err
	}
	got, settled, status := show(v)
	if status != nil {
		return none, status
	}
	if settled || wait <= 0 {
		return got, nil
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		if v, err = c.changed(limited, n, v.Revision()); err != nil {
			break
		}
		if got, settled, status = show(v); status != nil {
			return none, status
		}
		if settled {
			return got, nil
		}
	}
	if ctx.Err() != nil {
		return none, failure(ctx.Err())
	}
	return got, nil // as it is after the wait
}

// changed waits until an object has changed since a revision, and returns the
// objects then. Whatever interrupts the watch, the coordinator looks again.
func (c *Coordinator) changed(ctx context.Context, n objects.Name, since resource.Revision) (*objects.View, error) {
	w, err := c.follower.Watch(ctx, objects.WatchOptions{Kind: n.Kind, Namespace: n.Namespace, After: objects.AllOf(since), Cached: true})
	if err == nil {
		defer w.Close()
		err = awaitEvent(ctx, w, n)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // e.g. the cache is being loaded
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	v, err := c.follower.View()
	if err != nil {
		return c.view(ctx)
	}
	return v, nil
}

// lookAgain is the time between two looks where a watch does not begin.
const lookAgain = 100 * time.Millisecond

// awaitEvent waits until an object is among the changes of a watch.
func awaitEvent(ctx context.Context, w *follow.Watch, n objects.Name) error {
	for {
		changes, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(changes.Events, func(e *objects.Event) bool { return e.Name == n }) {
			return nil
		}
	}
}
