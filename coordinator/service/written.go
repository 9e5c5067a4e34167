package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// Objects are the objects of one kind that operators write, and that are in no
// namespace. Objects are changed under optimistic concurrency, as those of Quotas are.
type Objects[T any] interface {
	// Put creates an object (create: refused with 409 where somebody has written it) or
	// replaces it.
	Put(ctx context.Context, o *T, create bool) (*T, error)
	Get(ctx context.Context, name string) (*T, error)
	// List is all objects by name.
	List(ctx context.Context) ([]T, api.ListMeta, error)
	// Delete is refused with 409 where the object is in use.
	Delete(ctx context.Context, name string, require api.Preconditions) (*T, error)
}

// Written has the kinds of such objects. A new kind is a method here, and one
// WrittenKind (ADR 69).
type Written interface {
	Queues() Objects[api.Queue]
	PriorityClasses() Objects[api.PriorityClass]
}

// WrittenKind is all that the codecs know of such a kind. It is immutable.
type WrittenKind[T api.QuotaDocument] struct {
	// Kind is the kind in rights and in the paths of REST, Document the kind in
	// documents.
	Kind     Kind
	Document string
	Listed   Listed[T]

	decode func([]byte) (*T, *api.Status)
	typed  func(*T)
	bare   func(*T)
	of     func(Written) Objects[T]
}

// List lists the objects.
func (k WrittenKind[T]) List(ctx context.Context, w Written) ([]T, api.ListMeta, error) {
	return k.of(w).List(ctx)
}

// Documents are the documents of the kind.
func (k WrittenKind[T]) Documents(w Written) Documents[T] {
	put := func(create bool) func(context.Context, *T) (*T, error) {
		return func(ctx context.Context, v *T) (*T, error) { return k.of(w).Put(ctx, v, create) }
	}
	return Documents[T]{
		Decode: k.decode, Meta: k.Listed.Meta, Typed: k.typed, bare: k.bare, create: put(true), update: put(false),
		Get: func(ctx context.Context, _, name string) (*T, error) { return k.of(w).Get(ctx, name) },
		Remove: func(ctx context.Context, _, name string, require api.Preconditions) (*T, error) {
			return k.of(w).Delete(ctx, name, require)
		},
	}
}
