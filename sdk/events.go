package sdk

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
)

// Events are the events of objects in the last hour, as the coordinator that answers has
// derived them: metadata.since of a list is the time from which on it has
// every event.
type Events struct {
	objects
	Followed[api.Event]
}

// Events selects a namespace; "" is all of them, and the events of nodes, for admins.
func (c *Client) Events(namespace string) Events {
	return Events{objects{client: c, path: collection(namespace, "events")}, followed[api.Event](c, "events", namespace)}
}

// Get returns an event, in the newest state or in that of o, of which at most one counts.
func (e Events) Get(ctx context.Context, name string, o ...GetOptions) (*api.Event, error) {
	return call[api.Event](ctx, e.client, e.get(name, first(o)))
}

// List returns events ordered by namespace and name. A field selector with
// involvedObject.kind and involvedObject.name selects those of one object.
func (e Events) List(ctx context.Context, o ListOptions) (*api.EventList, error) {
	return listAll(ctx, e.objects, o, func(l *api.EventList) (*api.ListMeta, *[]api.Event) { return &l.Metadata, &l.Items })
}

// decodeEvent refuses: events come into being by themselves.
func decodeEvent([]byte) (*api.Event, *api.Status) {
	return nil, api.Errorf(http.StatusUnprocessableEntity, "kind: Event is not submitted: events come into being by themselves")
}
