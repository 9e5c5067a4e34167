package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/musterd/muster/api"
)

// Documents are the documents of one kind by which quota is set: they are
// created, replaced and patched under optimistic concurrency. It is immutable.
type Documents[T api.QuotaDocument] struct {
	Decode func(doc []byte) (*T, *api.Status)
	Meta   func(*T) *api.ObjectMeta
	// Typed names version and kind, which a service may leave out.
	Typed func(*T)
	Get   func(ctx context.Context, namespace, name string) (*T, error)
	// Remove deletes an object that has the required values, else the answer is 409.
	Remove func(ctx context.Context, namespace, name string, require api.Preconditions) (*T, error)

	// bare drops the status, which clients do not set.
	bare   func(*T)
	create func(context.Context, *T) (*T, error)
	// update replaces an object; where there is none it may create it.
	update func(context.Context, *T) (*T, error)
}

// At puts a submitted document where the request names: in a namespace, under a
// name, "" for any.
func (d Documents[T]) At(v *T, namespace, name string) *api.Status {
	meta := d.Meta(v)
	if meta.Namespace != "" && meta.Namespace != namespace {
		return api.Errorf(http.StatusBadRequest, "metadata.namespace: %q does not match the namespace %q of the URL", meta.Namespace, namespace)
	}
	meta.Namespace = namespace
	if name != "" && meta.Name != name {
		return api.Errorf(http.StatusBadRequest, "metadata.name: %q does not match the name %q of the URL", meta.Name, name)
	}
	return nil
}

// Create makes an object.
func (d Documents[T]) Create(ctx context.Context, v *T) (*T, error) {
	d.Meta(v).ResourceVersion, d.Meta(v).UID = "", ""
	Names(ctx, d.Meta(v).Namespace, d.Meta(v).Name)
	return d.typed(d.create(ctx, v))
}

// races bounds how often a change is repeated that lost to another.
const races = 5

// Put replaces an object, or creates it where it does not exist and no
// resourceVersion or uid requires that it exists.
func (d Documents[T]) Put(ctx context.Context, v *T) (got *T, created bool, err error) {
	if m := d.Meta(v); m.ResourceVersion != "" || m.UID != "" {
		got, err = d.typed(d.update(ctx, v))
		return got, false, err
	}
	var refused error
	for range races {
		got, err := d.typed(d.create(ctx, v))
		if err == nil {
			return got, true, nil
		}
		if !is(err, http.StatusConflict) {
			return nil, false, err
		}
		got, refused = d.typed(d.update(ctx, v))
		if !is(refused, http.StatusNotFound) {
			return got, false, refused
		}
	}
	return nil, false, refused
}

// typed names version and kind of an answer.
func (d Documents[T]) typed(got *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	d.Typed(got)
	return got, nil
}

// is reports whether err is a Status of the code.
func is(err error, code int) bool {
	var status *api.Status
	return errors.As(err, &status) && status.Code == code
}

// Patch applies a merge patch (RFC 7386) to the object as it is. A
// resourceVersion in it is a precondition; without one a patch that loses to
// another change is applied anew to the changed object.
func (d Documents[T]) Patch(ctx context.Context, namespace, name string, patch []byte) (*T, error) {
	var lost error
	seen := ""
	for range races {
		current, err := d.Get(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		version := d.Meta(current).ResourceVersion
		if lost != nil && version == seen {
			return nil, lost // refused for another reason than a race
		}
		patched, status := d.patched(current, patch)
		if status != nil {
			return nil, status
		}
		got, err := d.typed(d.update(ctx, patched))
		if !is(err, http.StatusConflict) || conditional(patch) {
			return got, err
		}
		lost, seen = err, version
	}
	return nil, lost
}

// patched is the result of a patch of an object.
func (d Documents[T]) patched(current *T, patch []byte) (*T, *api.Status) {
	meta := *d.Meta(current)
	d.bare(current)
	merged, status := api.MergePatch(current, patch)
	if status != nil {
		return nil, status
	}
	v, status := d.Decode(merged)
	if status != nil {
		return nil, status
	}
	now := d.Meta(v)
	switch {
	case now.Name != meta.Name:
		return nil, api.Errorf(http.StatusUnprocessableEntity, "metadata.name: %.120q: a patch cannot rename %q", now.Name, meta.Name)
	case now.Namespace != "" && now.Namespace != meta.Namespace:
		return nil, api.Errorf(http.StatusUnprocessableEntity, "metadata.namespace: %.120q: a patch cannot move what is in %q", now.Namespace, meta.Namespace)
	case now.ResourceVersion == "":
		now.ResourceVersion = meta.ResourceVersion
	}
	now.Namespace = meta.Namespace
	return v, nil
}

// conditional reports whether a patch, known to be an object, carries a
// resourceVersion.
func conditional(patch []byte) bool {
	var p struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	return json.Unmarshal(patch, &p) == nil && p.Metadata.ResourceVersion != ""
}

// ResourceQuotas are the documents of that kind.
func ResourceQuotas(q Quotas) Documents[api.ResourceQuota] {
	return Documents[api.ResourceQuota]{
		Decode: api.DecodeResourceQuota,
		Meta:   func(q *api.ResourceQuota) *api.ObjectMeta { return &q.Metadata },
		Typed: func(q *api.ResourceQuota) {
			q.APIVersion, q.Kind = cmp.Or(q.APIVersion, api.APIVersion), cmp.Or(q.Kind, api.KindResourceQuota)
		},
		bare:   func(q *api.ResourceQuota) { q.Status = api.ResourceQuotaStatus{} },
		Get:    q.GetResourceQuota,
		create: q.CreateResourceQuota,
		update: q.UpdateResourceQuota,
		Remove: q.DeleteResourceQuota,
	}
}

// QuotaTrees are the documents of that kind.
func QuotaTrees(q Quotas) Documents[api.QuotaTree] {
	return Documents[api.QuotaTree]{
		Decode: api.DecodeQuotaTree,
		Meta:   func(t *api.QuotaTree) *api.ObjectMeta { return &t.Metadata },
		Typed: func(t *api.QuotaTree) {
			t.APIVersion, t.Kind = cmp.Or(t.APIVersion, api.APIVersion), cmp.Or(t.Kind, api.KindQuotaTree)
		},
		bare:   func(t *api.QuotaTree) { t.Status = api.QuotaTreeStatus{} },
		Get:    named(q.GetQuotaTree),
		create: puts(q.PutQuotaTree, true),
		update: puts(q.PutQuotaTree, false),
		Remove: removes(q.DeleteQuotaTree),
	}
}

// QuotaForests are the documents of that kind.
func QuotaForests(q Quotas) Documents[api.QuotaForest] {
	return Documents[api.QuotaForest]{
		Decode: api.DecodeQuotaForest,
		Meta:   func(f *api.QuotaForest) *api.ObjectMeta { return &f.Metadata },
		Typed: func(f *api.QuotaForest) {
			f.APIVersion, f.Kind = cmp.Or(f.APIVersion, api.APIVersion), cmp.Or(f.Kind, api.KindQuotaForest)
		},
		bare:   func(*api.QuotaForest) {},
		Get:    named(q.GetQuotaForest),
		create: puts(q.PutQuotaForest, true),
		update: puts(q.PutQuotaForest, false),
		Remove: removes(q.DeleteQuotaForest),
	}
}

// QuotaBindings are the documents of that kind. A binding bears the name of its
// namespace, and is in none.
func QuotaBindings(q Quotas) Documents[api.QuotaBinding] {
	return Documents[api.QuotaBinding]{
		Decode: api.DecodeQuotaBinding,
		Meta:   func(b *api.QuotaBinding) *api.ObjectMeta { return &b.Metadata },
		Typed: func(b *api.QuotaBinding) {
			b.APIVersion, b.Kind = cmp.Or(b.APIVersion, api.APIVersion), cmp.Or(b.Kind, api.KindQuotaBinding)
		},
		bare:   func(*api.QuotaBinding) {},
		Get:    named(q.GetQuotaBinding),
		create: puts(q.PutQuotaBinding, true),
		update: puts(q.PutQuotaBinding, false),
		Remove: removes(q.DeleteQuotaBinding),
	}
}

// named adapts a method of objects without a namespace.
func named[T any](f func(ctx context.Context, name string) (*T, error)) func(context.Context, string, string) (*T, error) {
	return func(ctx context.Context, _, name string) (*T, error) { return f(ctx, name) }
}

// removes is named of a deletion.
func removes[T any](f func(ctx context.Context, name string, require api.Preconditions) (*T, error)) func(context.Context, string, string, api.Preconditions) (*T, error) {
	return func(ctx context.Context, _, name string, require api.Preconditions) (*T, error) {
		return f(ctx, name, require)
	}
}

func puts[T any](f func(ctx context.Context, v *T, create bool) (*T, error), create bool) func(context.Context, *T) (*T, error) {
	return func(ctx context.Context, v *T) (*T, error) { return f(ctx, v, create) }
}
