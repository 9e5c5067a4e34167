package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/musterd/muster/api"
)

// Kind is one kind of object, with the calls of the kind for clients that work
// with every kind alike. A new kind is one entry of Kinds.
type Kind struct {
	Name       string   // as people write it: "job"
	Plural     string   // as the URL has it: "jobs"
	Short      []string // further names
	Document   string   // as documents have it: "Job"
	Namespaced bool
	// Created is false for a kind whose objects come into being by themselves.
	Created bool
	// Derived: the server makes the objects from its state, and nobody changes them.
	Derived bool
	// Replaced is true for a kind whose objects are replaced as a whole, and false
	// where a patch changes the fields that may change.
	Replaced bool
	// once: a creation is sent once, since it has no idempotency key.
	once bool
	// limits: the objects name resources, so that Config.AllowUnknownResources has an
	// effect.
	limits bool

	verbs
}

// verbs are the calls of one kind, without its Go type.
type verbs struct {
	decode func(doc []byte) (any, *api.Status)
	parse  func(answer []byte) (any, error)
	meta   func(any) *api.ObjectMeta
	create func(context.Context, objects, any, CreateOptions) (any, error)
	get    func(context.Context, objects, string, GetOptions) (any, error)
	list   func(context.Context, objects, ListOptions) (*ObjectList, error) // all pages
	page   func(context.Context, objects, ListOptions) (*ObjectList, error)
	put    func(context.Context, objects, string, any) (any, error)
	patch  func(context.Context, objects, string, []byte) (any, error)
	remove func(context.Context, objects, string, api.DeleteOptions) (any, error)
}

// Object is one object of any kind: Value is *api.Job for a job, and so on.
type Object struct {
	Kind  *Kind
	Value any
}

// Meta returns the object's own metadata.
func (o Object) Meta() *api.ObjectMeta { return o.Kind.meta(o.Value) }

// ObjectList is a list of objects of one kind.
type ObjectList struct {
	Meta  api.ListMeta
	Items []Object
}

// Kinds are all kinds that are served under their own names, in the order in
// which people look at them. The value is not to be changed.
var Kinds = []*Kind{
	kindOf(Kind{Name: "job", Plural: "jobs", Document: api.KindJob, Namespaced: true, Created: true},
		api.DecodeJob, func(j *api.Job) *api.ObjectMeta { return &j.Metadata },
		func(l *api.JobList) (*api.ListMeta, *[]api.Job) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "allocation", Plural: "allocations", Short: []string{"alloc", "allocs"}, Document: api.KindAllocation, Namespaced: true, Created: true},
		api.DecodeAllocation, func(a *api.Allocation) *api.ObjectMeta { return &a.Metadata },
		func(l *api.AllocationList) (*api.ListMeta, *[]api.Allocation) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "node", Plural: "nodes", Short: []string{"no"}, Document: api.KindNode, Created: true, once: true},
		api.DecodeNode, func(n *api.Node) *api.ObjectMeta { return &n.Metadata },
		func(l *api.NodeList) (*api.ListMeta, *[]api.Node) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "event", Plural: "events", Short: []string{"ev"}, Document: api.KindEvent, Namespaced: true, Derived: true},
		decodeEvent, func(e *api.Event) *api.ObjectMeta { return &e.Metadata },
		func(l *api.EventList) (*api.ListMeta, *[]api.Event) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "tenant", Plural: "tenants", Document: api.KindTenant, Created: true, Replaced: true},
		api.DecodeTenant, func(t *api.Tenant) *api.ObjectMeta { return &t.Metadata },
		func(l *api.TenantList) (*api.ListMeta, *[]api.Tenant) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "namespace", Plural: "namespaces", Short: []string{"ns"}, Document: api.KindNamespace, Created: true, Replaced: true},
		api.DecodeNamespace, func(n *api.Namespace) *api.ObjectMeta { return &n.Metadata },
		func(l *api.NamespaceList) (*api.ListMeta, *[]api.Namespace) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "resource", Plural: "resources", Document: api.KindResource, Created: true, Replaced: true},
		api.DecodeResource, func(r *api.Resource) *api.ObjectMeta { return &r.Metadata },
		func(l *api.ResourceList) (*api.ListMeta, *[]api.Resource) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "priorityclass", Plural: "priorityclasses", Short: []string{"pc"}, Document: api.KindPriorityClass, Created: true, Replaced: true},
		api.DecodePriorityClass, func(c *api.PriorityClass) *api.ObjectMeta { return &c.Metadata },
		func(l *api.PriorityClassList) (*api.ListMeta, *[]api.PriorityClass) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "queue", Plural: "queues", Document: api.KindQueue, Created: true, Replaced: true},
		api.DecodeQueue, func(q *api.Queue) *api.ObjectMeta { return &q.Metadata },
		func(l *api.QueueList) (*api.ListMeta, *[]api.Queue) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "rolebinding", Plural: "rolebindings", Short: []string{"rb"}, Document: api.KindRoleBinding, Created: true, Replaced: true},
		api.DecodeRoleBinding, func(b *api.RoleBinding) *api.ObjectMeta { return &b.Metadata },
		func(l *api.RoleBindingList) (*api.ListMeta, *[]api.RoleBinding) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "quotatree", Plural: "quotatrees", Short: []string{"qt"}, Document: api.KindQuotaTree, Created: true, Replaced: true, limits: true},
		api.DecodeQuotaTree, func(t *api.QuotaTree) *api.ObjectMeta { return &t.Metadata },
		func(l *api.QuotaTreeList) (*api.ListMeta, *[]api.QuotaTree) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "quotaforest", Plural: "quotaforests", Short: []string{"qf"}, Document: api.KindQuotaForest, Created: true, Replaced: true},
		api.DecodeQuotaForest, func(f *api.QuotaForest) *api.ObjectMeta { return &f.Metadata },
		func(l *api.QuotaForestList) (*api.ListMeta, *[]api.QuotaForest) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "quotabinding", Plural: "quotabindings", Short: []string{"qb"}, Document: api.KindQuotaBinding, Created: true, Replaced: true},
		api.DecodeQuotaBinding, func(b *api.QuotaBinding) *api.ObjectMeta { return &b.Metadata },
		func(l *api.QuotaBindingList) (*api.ListMeta, *[]api.QuotaBinding) { return &l.Metadata, &l.Items }),
	kindOf(Kind{Name: "resourcequota", Plural: "resourcequotas", Short: []string{"rq", "quota", "quotas"}, Document: api.KindResourceQuota, Namespaced: true, Created: true, Replaced: true, limits: true},
		api.DecodeResourceQuota, func(q *api.ResourceQuota) *api.ObjectMeta { return &q.Metadata },
		func(l *api.ResourceQuotaList) (*api.ListMeta, *[]api.ResourceQuota) { return &l.Metadata, &l.Items }),
}

// KindNamed finds a kind by its name, its plural or a short name, in lower case.
func KindNamed(name string) (*Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return name == k.Name || name == k.Plural || slices.Contains(k.Short, name) })
	if i < 0 {
		return nil, false
	}
	return Kinds[i], true
}

// KindOfDocument finds a kind by the kind that a document names.
func KindOfDocument(kind string) (*Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return kind == k.Document })
	if i < 0 {
		return nil, false
	}
	return Kinds[i], true
}

// kindOf gives an entry the calls of its Go type.
func kindOf[T, L any](k Kind, decode func([]byte) (*T, *api.Status), meta func(*T) *api.ObjectMeta, parts func(*L) (*api.ListMeta, *[]T)) *Kind {
	k.verbs = verbs{
		decode: func(doc []byte) (any, *api.Status) { return anyOf(decode(doc)) },
		parse: func(answer []byte) (any, error) {
			v := new(T)
			return v, json.Unmarshal(answer, v)
		},
		meta: func(v any) *api.ObjectMeta { return meta(v.(*T)) },
		create: func(ctx context.Context, at objects, v any, o CreateOptions) (any, error) {
			if k.Replaced || k.once { // which have no idempotency key
				return untyped(send[T](ctx, at, http.MethodPost, at.path, v))
			}
			return untyped(create[T](ctx, at.client, at.path, v, o))
		},
		get: func(ctx context.Context, at objects, name string, o GetOptions) (any, error) {
			return untyped(call[T](ctx, at.client, at.get(name, o)))
		},
		put: func(ctx context.Context, at objects, name string, v any) (any, error) {
			return untyped(send[T](ctx, at, http.MethodPut, at.at(name, ""), v))
		},
		patch: func(ctx context.Context, at objects, name string, patch []byte) (any, error) {
			return untyped(call[T](ctx, at.client, at.patch(name, patch)))
		},
		remove: func(ctx context.Context, at objects, name string, o api.DeleteOptions) (any, error) {
			return untyped(call[T](ctx, at.client, at.with(http.MethodDelete, at.at(name, ""), o)))
		},
	}
	made := &k
	untypedList := func(got *L, err error) (*ObjectList, error) {
		if err != nil {
			return nil, err
		}
		m, items := parts(got)
		list := &ObjectList{Meta: *m, Items: make([]Object, len(*items))}
		for i := range *items {
			list.Items[i] = Object{Kind: made, Value: &(*items)[i]}
		}
		return list, nil
	}
	k.list = func(ctx context.Context, at objects, o ListOptions) (*ObjectList, error) {
		return untypedList(listAll(ctx, at, o, parts))
	}
	k.page = func(ctx context.Context, at objects, o ListOptions) (*ObjectList, error) {
		return untypedList(call[L](ctx, at.client, at.list(o)))
	}
	return made
}

// untyped drops the Go type of a result; a failure has none.
func untyped[T any](v *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func anyOf[T any](v *T, status *api.Status) (any, *api.Status) {
	if status != nil {
		return nil, status
	}
	return v, nil
}

// send sends a document once.
func send[T any](ctx context.Context, at objects, method, path string, v any) (*T, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return call[T](ctx, at.client, request{method: method, path: path, query: at.changes, contentType: "application/json", body: body})
}

// Decode reads and validates a document of the kind.
func (k *Kind) Decode(doc []byte) (Object, *api.Status) {
	v, status := k.decode(doc)
	if status != nil {
		return Object{}, status
	}
	return Object{Kind: k, Value: v}, nil
}

// Resource are the calls of one kind in one namespace.
type Resource struct {
	kind *Kind
	at   objects
}

// Resource selects a kind, and a namespace where the kind has one; namespace ""
// is all of them and serves List alone.
func (c *Client) Resource(k *Kind, namespace string) Resource {
	if !k.Namespaced {
		namespace = ""
	}
	at := objects{client: c, path: collection(namespace, k.Plural)}
	if k.limits {
		at.changes = c.ofQuota
	}
	return Resource{kind: k, at: at}
}

func (r Resource) object(v any, err error) (Object, error) {
	if err != nil {
		return Object{}, err
	}
	return Object{Kind: r.kind, Value: v}, nil
}

// Create submits an object that does not exist yet.
func (r Resource) Create(ctx context.Context, o Object, options CreateOptions) (Object, error) {
	if !r.kind.Created {
		return Object{}, fmt.Errorf("a %s is not created by clients", r.kind.Name)
	}
	return r.object(r.kind.create(ctx, r.at, o.Value, options))
}

// Get returns an object. Only jobs and allocations can be waited for.
func (r Resource) Get(ctx context.Context, name string, o GetOptions) (Object, error) {
	return r.object(r.kind.get(ctx, r.at, name, o))
}

// List returns objects ordered by namespace and name.
func (r Resource) List(ctx context.Context, o ListOptions) (*ObjectList, error) {
	return r.kind.list(ctx, r.at, o)
}

// Replace replaces an object of a kind that is Replaced: if the
// object has the resourceVersion of the document, or any version where the document has
// none.
func (r Resource) Replace(ctx context.Context, o Object) (Object, error) {
	if !r.kind.Replaced {
		return Object{}, fmt.Errorf("a %s is not replaced as a whole: patch it", r.kind.Name)
	}
	return r.object(r.kind.put(ctx, r.at, o.Meta().Name, o.Value))
}

// Patch applies a merge patch (RFC 7386). A metadata.resourceVersion in it is a
// precondition.
func (r Resource) Patch(ctx context.Context, name string, patch []byte) (Object, error) {
	return r.object(r.kind.patch(ctx, r.at, name, patch))
}

// Delete ends or removes an object and returns its last state. Of the
// options the preconditions are for all kinds, the others for jobs and allocations.
func (r Resource) Delete(ctx context.Context, name string, o api.DeleteOptions) (Object, error) {
	return r.object(r.kind.remove(ctx, r.at, name, o))
}
