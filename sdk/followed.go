package sdk

import (
	"context"
	"fmt"
	"iter"
)

// Change is an Event with the Go type of its object.
type Change[T any] struct {
	Type    string // ADDED, MODIFIED or DELETED
	Object  *T     // for DELETED the last one
	ID      string // as of an Event
	Present bool   // the object was there when the watch began
}

// Followed are the reads of one kind that go on: iterators, watches and waits.
type Followed[T any] struct{ resource Resource }

// followed selects a kind by its plural.
func followed[T any](c *Client, plural, namespace string) Followed[T] {
	kind, found := KindNamed(plural)
	if !found {
		panic(fmt.Sprintf("sdk: %q is not among the kinds", plural))
	}
	return Followed[T]{c.Resource(kind, namespace)}
}

// All yields the objects in the order of namespace and name, and asks for the
// next page when the objects of the page before were taken. An error is the last
// pair.
func (f Followed[T]) All(ctx context.Context, o ListOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for object, err := range f.resource.All(ctx, o) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(object.Value.(*T), nil) {
				return
			}
		}
	}
}

// Watch yields the changes of the objects, as Resource.Watch does.
func (f Followed[T]) Watch(ctx context.Context, o WatchOptions) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		for e, err := range f.resource.Watch(ctx, o) {
			if err != nil {
				yield(Change[T]{}, err)
				return
			}
			if !yield(Change[T]{Type: e.Type, Object: e.Object.Value.(*T), ID: e.ID, Present: e.Present}, nil) {
				return
			}
		}
	}
}

// All yields the objects of a kind, page by page.
func (r Resource) All(ctx context.Context, o ListOptions) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for limit, given := o.Limit, 0; ; {
			page, err := r.kind.page(ctx, r.at, o)
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, object := range page.Items {
				if !yield(object, nil) {
					return
				}
				if given++; given == limit {
					return
				}
			}
			switch {
			case page.Meta.Continue == "":
				return
			case page.Meta.Continue == o.Continue:
				yield(Object{}, r.at.stuck(given))
				return
			case limit > 0:
				o.Limit = limit - given
			}
			o.Continue = page.Meta.Continue
		}
	}
}
