package sdk

import (
	"context"

	"github.com/musterd/muster/api"
)

// Written are the calls of a kind that operators write and whose objects are in no
// namespace: T is an object, L a list.
type Written[T api.QuotaDocument, L any] struct {
	quotaDocuments[T]
	parts func(*L) (*api.ListMeta, *[]T)
}

// List returns objects ordered by name.
func (w Written[T, L]) List(ctx context.Context, o ListOptions) (*L, error) {
	return listAll(ctx, w.objects, o, w.parts)
}

func writtenOf[T api.QuotaDocument, L any](c *Client, plural string, meta func(*T) *api.ObjectMeta, parts func(*L) (*api.ListMeta, *[]T)) Written[T, L] {
	return Written[T, L]{quotaDocuments[T]{
		objects{client: c, path: collection("", plural)}, followed[T](c, plural, ""), func(o *T) string { return meta(o).Name },
	}, parts}
}

// PriorityClasses selects the priority classes: those that are built in, and those that
// operators wrote.
func (c *Client) PriorityClasses() Written[api.PriorityClass, api.PriorityClassList] {
	return writtenOf(c, "priorityclasses", func(p *api.PriorityClass) *api.ObjectMeta { return &p.Metadata }, func(l *api.PriorityClassList) (*api.ListMeta, *[]api.PriorityClass) { return &l.Metadata, &l.Items })
}

// Queues selects the queues: the default one, those that live work names, and those that
// operators wrote.
func (c *Client) Queues() Written[api.Queue, api.QueueList] {
	return writtenOf(c, "queues", func(q *api.Queue) *api.ObjectMeta { return &q.Metadata }, func(l *api.QueueList) (*api.ListMeta, *[]api.Queue) { return &l.Metadata, &l.Items })
}
