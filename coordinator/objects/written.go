package objects

import (
	"iter"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/shown"
)

// Written is a kind of objects that operators write, as the projection shows it.
type Written[T any] struct {
	Kind  Kind
	Rules *edit.Kind[T]
	// Validate judges an object by itself.
	Validate func(*T) *api.Status
}

// shows is the entry of an object that operators write.
type shows[T any] interface{ show() shown.Versioned[T] }

// Find returns an object of the kind.
func (w Written[T]) Find(v *View, name string) (*T, *api.Status) {
	e, found := v.tables[w.Kind].Get(Name{w.Kind, "", name}.position())
	if !found {
		return nil, w.Rules.NotFound(name)
	}
	return e.(shows[T]).show().Copy(), nil
}

// List is all objects of the kind by name, with the version of the list.
func (w Written[T]) List(v *View) ([]T, api.ListMeta) {
	return shown.List(v.Floor(), w.all(v))
}

func (w Written[T]) all(v *View) iter.Seq[shown.Versioned[T]] {
	return func(yield func(shown.Versioned[T]) bool) {
		for i := range v.After(w.Kind, "", Name{}) {
			if !yield(i.entry.(shows[T]).show()) {
				return
			}
		}
	}
}

// WrittenClasses is the kind PriorityClass.
var WrittenClasses = Written[api.PriorityClass]{PriorityClasses, &edit.Classes, (*api.PriorityClass).Validate}

// WrittenQueues is the kind Queue.
var WrittenQueues = Written[api.Queue]{Queues, &edit.Queues, (*api.Queue).Validate}
