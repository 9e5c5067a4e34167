package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// ListEvents implements service.Events.
func (c *Coordinator) ListEvents(ctx context.Context, namespace string, p service.Page[api.Event]) (*api.EventList, error) {
	l, err := list(ctx, c, objects.Events, namespace, p)
	if err != nil {
		return nil, err
	}
	l.meta.Since = l.view.EventsSince().UTC().Format(time.RFC3339)
	return &api.EventList{Kind: api.KindEvent + "List", Metadata: l.meta, Items: l.items}, nil
}

// GetEvent implements service.Events.
func (c *Coordinator) GetEvent(ctx context.Context, namespace, name string) (*api.Event, error) {
	return look(ctx, c, func(v *objects.View) (*api.Event, *api.Status) {
		item, found := v.Get(objects.Name{Kind: objects.Events, Namespace: namespace, Name: name})
		if !found {
			return nil, service.NoEvent(namespace, name)
		}
		return item.Object().(*api.Event), nil
	})
}
