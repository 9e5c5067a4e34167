package service

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/events"
)

// Events are the events of objects, as this coordinator has derived them. Every coordinator
// answers by itself.
type Events interface {
	// ListEvents is as ListAllocations. A list goes on at the coordinator alone that
	// began it: another one answers the next page with 410.
	ListEvents(ctx context.Context, namespace string, p Page[api.Event]) (*api.EventList, error)
	// GetEvent finds an event by its name; namespace is "" for events of nodes.
	GetEvent(ctx context.Context, namespace, name string) (*api.Event, error)
}

// involvedName is the field of the object's name.
const involvedName = "involvedObject.name"

// ListedEvents select by the fields that kubectl selects events by.
var ListedEvents = Listed[api.Event]{
	Meta: func(e *api.Event) *api.ObjectMeta { return &e.Metadata },
	Fields: map[string]func(*api.Event) string{
		"metadata.name":            func(e *api.Event) string { return e.Metadata.Name },
		"metadata.namespace":       func(e *api.Event) string { return e.Metadata.Namespace },
		"involvedObject.kind":      func(e *api.Event) string { return e.InvolvedObject.Kind },
		"involvedObject.namespace": func(e *api.Event) string { return e.InvolvedObject.Namespace },
		involvedName:               func(e *api.Event) string { return e.InvolvedObject.Name },
		"involvedObject.uid":       func(e *api.Event) string { return e.InvolvedObject.UID },
		"reason":                   func(e *api.Event) string { return e.Reason },
		"source":                   func(e *api.Event) string { return e.Source.Host },
		"type":                     func(e *api.Event) string { return e.Type },
	},
}

// ListEvents is as the function ListAllocations. A selector that names one object
// looks at the events of that object alone.
func ListEvents(ctx context.Context, s Events, namespace string, q *Selection) (items []api.Event, meta api.ListMeta, more string, err error) {
	p := ListedEvents.PageOf(q)
	if object, named := q.Fields.value(involvedName); named && object != "" {
		p.Prefix = events.NamePrefix(object)
	}
	got, err := s.ListEvents(ctx, namespace, p)
	if err != nil {
		return nil, meta, "", err
	}
	return got.Items, got.Metadata, got.Metadata.Continue, nil
}

// NoEvent is the refusal of an event that there is not.
func NoEvent(namespace, name string) *api.Status {
	if namespace == "" {
		return api.Errorf(http.StatusNotFound, "event %s not found", Clip(name))
	}
	return notThere(KindEvents, namespace, name)
}

// value is the value that a selector wants a field to have.
func (s FieldSelector) value(field string) (string, bool) {
	for _, r := range s {
		if r.field == field && !r.negated {
			return r.value, true
		}
	}
	return "", false
}
