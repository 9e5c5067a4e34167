package service

import (
	"cmp"
	"context"

	"github.com/musterd/muster/api"
)

// Resources are the names of resources: those that are built in, those that registered
// nodes declare, and those that operators created. Objects are changed under optimistic
// concurrency, as those of Quotas are; an object that nobody has written has no
// resourceVersion, and the first update of it creates its record.
type Resources interface {
	// PutResource creates a resource (create: refused with 409 where somebody has
	// written it) or replaces it.
	PutResource(ctx context.Context, r *api.Resource, create bool) (*api.Resource, error)
	GetResource(ctx context.Context, name string) (*api.Resource, error)
	ListResources(ctx context.Context) (*api.ResourceList, error)
	// DeleteResource is refused with 409 where a node, a quota, a tree or a unit names
	// the resource. A built-in one gets its own description back.
	DeleteResource(ctx context.Context, name string, require api.Preconditions) (*api.Resource, error)
}

// ResourceDocuments are the documents of that kind.
func ResourceDocuments(s Resources) Documents[api.Resource] {
	return Documents[api.Resource]{
		Decode: api.DecodeResource,
		Meta:   func(r *api.Resource) *api.ObjectMeta { return &r.Metadata },
		Typed: func(r *api.Resource) {
			r.APIVersion, r.Kind = cmp.Or(r.APIVersion, api.APIVersion), cmp.Or(r.Kind, api.KindResource)
		},
		bare:   func(r *api.Resource) { r.Status = api.ResourceStatus{} },
		Get:    named(s.GetResource),
		create: puts(s.PutResource, true),
		update: puts(s.PutResource, false),
		Remove: removes(s.DeleteResource),
	}
}

var ListedResources = Listed[api.Resource]{
	Meta: func(r *api.Resource) *api.ObjectMeta { return &r.Metadata },
	Fields: map[string]func(*api.Resource) string{
		"metadata.name": func(r *api.Resource) string { return r.Metadata.Name },
		"spec.kind":     func(r *api.Resource) string { return r.Spec.Kind },
		"spec.scope":    func(r *api.Resource) string { return r.Spec.Scope },
	},
}
