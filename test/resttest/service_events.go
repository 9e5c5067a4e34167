package resttest

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// This file derives events from the cluster's writes, as each coordinator does.

// shows is the objects of the keys that were written, with their events.
type shows struct {
	kvs   map[string]record.KV
	cache *objects.Cache
	at    resource.Revision
}

func newShows(now time.Time) *shows {
	s := &shows{kvs: map[string]record.KV{}, cache: objects.New()}
	s.cache.KeepEvents(events.New(events.Default, now), "resttest", 0, now)
	return s
}

// take takes the operations of one transaction.
func (s *shows) take(ops []record.Op, at resource.Revision, now time.Time) {
	for _, op := range ops {
		s.cache.Touch(op.Key)
		if op.Delete {
			delete(s.kvs, op.Key)
			continue
		}
		created := at
		if before, found := s.kvs[op.Key]; found {
			created = before.CreateRev
		}
		s.kvs[op.Key] = record.KV{Key: op.Key, Value: op.Value, CreateRev: created, ModRev: at}
	}
	s.at = at
	must(s.cache.Refresh(s.kvs, at, now))
}

// ListEvents implements service.Events.
func (c *Cluster) ListEvents(_ context.Context, namespace string, p service.Page[api.Event]) (*api.EventList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.shows.cache.View(c.shows.at, c.time())
	list := &api.EventList{Kind: api.KindEvent + "List", Metadata: shown.ListMeta(v.Revision()), Items: []api.Event{}}
	list.Metadata.Since = v.EventsSince().UTC().Format(time.RFC3339)
	for item := range v.After(objects.Events, namespace, objects.Named(objects.Events, p.After)) {
		if p.Limit > 0 && len(list.Items) == p.Limit {
			list.Metadata.Continue = service.Position(&list.Items[len(list.Items)-1].Metadata)
			break
		}
		if e := item.Object().(*api.Event); p.Match == nil || p.Match(e) {
			list.Items = append(list.Items, *e)
		}
	}
	return list, nil
}

// GetEvent implements service.Events.
func (c *Cluster) GetEvent(_ context.Context, namespace, name string) (*api.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item, found := c.shows.cache.View(c.shows.at, c.time()).Get(objects.Name{Kind: objects.Events, Namespace: namespace, Name: name})
	if !found {
		return nil, service.NoEvent(namespace, name)
	}
	return item.Object().(*api.Event), nil
}
