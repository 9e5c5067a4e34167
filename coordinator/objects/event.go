package objects

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// EventType says how an object changed. The values are those of watches.
type EventType string

// The event types.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Event is the change of one object at one revision. History.Next renders it,
// once for all readers: from then on it never changes.
type Event struct {
	Name
	ID   ID
	Type EventType
	// Object points to the API's type of the kind: the object after the change, and
	// for Deleted the last one, with the revision of its deletion. Before is the
	// object before the change without its figures; nil for Added. Nobody changes
	// them.
	Object, Before any
	// JSON is Object encoded.
	JSON []byte

	before, after entry // nil where there was no object, or is none
	rendered      bool
	seq           uint64 // counts the events of all kinds
}

// bytes estimates the memory of an event.
func (e *Event) bytes() int {
	n := 256
	if e.before != nil {
		n += e.before.size()
	}
	if e.after != nil {
		n += 2 * e.after.size()
	}
	return n
}

// render makes the object and its text. The figures are those of a view. A
// change that no reader can see has no type.
func (e *Event) render(v *View) {
	if e.rendered {
		return
	}
	e.rendered = true
	if e.before != nil {
		e.Before = e.before.base()
	}
	switch {
	case e.before == nil:
		e.Type, e.Object = Added, e.after.base()
	case e.after == nil:
		e.Type, e.Object = Deleted, WithVersion(e.Before, e.ID.Revision)
	default:
		e.Object = e.after.base()
		if reflect.DeepEqual(e.Before, e.Object) {
			e.Object, e.Before = nil, nil
			return
		}
		e.Type = Modified
	}
	if e.after != nil {
		e.after.figures(e.Object, v)
	}
	e.JSON = Encode(e.Object)
}

// Render makes the objects of changes; no reader can see an Event without a
// type.
func Render(changes []*Event, v *View) {
	for _, e := range changes {
		e.render(v)
	}
}

// Encode is an object as JSON.
func Encode(object any) []byte {
	b, err := json.Marshal(object)
	if err != nil {
		panic(err) // the types of objects can always be encoded
	}
	return b
}

// WithVersion is a copy of an object with the resourceVersion of a revision.
func WithVersion(object any, at resource.Revision) any {
	switch o := object.(type) {
	case *api.Allocation:
		return versioned(o, func(o *api.Allocation) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.Job:
		return versioned(o, func(o *api.Job) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.Node:
		return versioned(o, func(o *api.Node) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.ResourceQuota:
		return versioned(o, func(o *api.ResourceQuota) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.QuotaForest:
		return versioned(o, func(o *api.QuotaForest) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.QuotaBinding:
		return versioned(o, func(o *api.QuotaBinding) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.QuotaTree:
		return versioned(o, func(o *api.QuotaTree) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.Tenant:
		return versioned(o, func(o *api.Tenant) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.Namespace:
		return versioned(o, func(o *api.Namespace) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.Resource:
		return versioned(o, func(o *api.Resource) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.PriorityClass:
		return versioned(o, func(o *api.PriorityClass) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.Queue:
		return versioned(o, func(o *api.Queue) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.AccessToken:
		return versioned(o, func(o *api.AccessToken) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.RoleBinding:
		return versioned(o, func(o *api.RoleBinding) *api.ObjectMeta { return &o.Metadata }, at)
	case *api.Event:
		return versioned(o, func(o *api.Event) *api.ObjectMeta { return &o.Metadata }, at)
	}
	return object
}

func versioned[T any](o *T, meta func(*T) *api.ObjectMeta, at resource.Revision) *T {
	later := *o
	meta(&later).ResourceVersion = strconv.FormatInt(int64(at), 10)
	return &later
}
