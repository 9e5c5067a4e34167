package sdk

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/musterd/muster/api"
)

// quotaDocuments are the calls that the kinds have in common by which quota is
// set.
type quotaDocuments[T api.QuotaDocument] struct {
	objects
	Followed[T]
	nameOf func(*T) string
}

// Create submits an object that does not exist yet. The request is sent once:
// after a broken connection a get shows whether the object was created.
func (q quotaDocuments[T]) Create(ctx context.Context, v *T) (*T, error) {
	return send[T](ctx, q.objects, http.MethodPost, q.path, v)
}

// Get returns an object, in the newest state or in that of o, of which at most one counts.
func (q quotaDocuments[T]) Get(ctx context.Context, name string, o ...GetOptions) (*T, error) {
	return call[T](ctx, q.client, q.get(name, first(o)))
}

// Update replaces an object, if the object has the resourceVersion of the document. A
// document without a resourceVersion replaces any version, or creates the object.
func (q quotaDocuments[T]) Update(ctx context.Context, v *T) (*T, error) {
	return send[T](ctx, q.objects, http.MethodPut, q.at(q.nameOf(v), ""), v)
}

// Patch applies a merge patch (RFC 7386). A metadata.resourceVersion in it is
// a precondition.
func (q quotaDocuments[T]) Patch(ctx context.Context, name string, patch []byte) (*T, error) {
	return call[T](ctx, q.client, q.patch(name, patch))
}

// Delete removes an object and returns it as it was.
func (q quotaDocuments[T]) Delete(ctx context.Context, name string) (*T, error) {
	return call[T](ctx, q.client, request{method: http.MethodDelete, path: q.at(name, "")})
}

// DeleteIf is Delete of an object that has the required values; another one is left as
// it is, and the answer is 409.
func (q quotaDocuments[T]) DeleteIf(ctx context.Context, name string, require api.Preconditions) (*T, error) {
	return call[T](ctx, q.client, q.with(http.MethodDelete, q.at(name, ""), api.DeleteOptions{Preconditions: &require}))
}

// ResourceQuotas are the limits of one namespace.
type ResourceQuotas struct {
	quotaDocuments[api.ResourceQuota]
}

// ResourceQuotas selects a namespace; "" is all of them and serves List alone.
func (c *Client) ResourceQuotas(namespace string) ResourceQuotas {
	return ResourceQuotas{quotaDocuments[api.ResourceQuota]{
		objects{client: c, path: collection(namespace, "resourcequotas"), changes: c.ofQuota}, followed[api.ResourceQuota](c, "resourcequotas", namespace), func(q *api.ResourceQuota) string { return q.Metadata.Name },
	}}
}

// List returns resource quotas ordered by namespace and name.
func (q ResourceQuotas) List(ctx context.Context, o ListOptions) (*api.ResourceQuotaList, error) {
	return listAll(ctx, q.objects, o, func(l *api.ResourceQuotaList) (*api.ListMeta, *[]api.ResourceQuota) { return &l.Metadata, &l.Items })
}

// Status returns the usage of a quota.
func (q ResourceQuotas) Status(ctx context.Context, name string) (*api.ResourceQuotaStatus, error) {
	answer, err := call[struct {
		Status api.ResourceQuotaStatus `json:"status"`
	}](ctx, q.client, request{method: http.MethodGet, path: q.at(name, "/status")})
	if err != nil {
		return nil, err
	}
	return &answer.Status, nil
}

// QuotaTrees are the trees of quotas.
type QuotaTrees struct {
	quotaDocuments[api.QuotaTree]
}

// QuotaTrees selects the trees.
func (c *Client) QuotaTrees() QuotaTrees {
	return QuotaTrees{quotaDocuments[api.QuotaTree]{
		objects{client: c, path: collection("", "quotatrees"), changes: c.ofQuota}, followed[api.QuotaTree](c, "quotatrees", ""), func(t *api.QuotaTree) string { return t.Metadata.Name },
	}}
}

// List returns trees ordered by name.
func (q QuotaTrees) List(ctx context.Context, o ListOptions) (*api.QuotaTreeList, error) {
	return listAll(ctx, q.objects, o, func(l *api.QuotaTreeList) (*api.ListMeta, *[]api.QuotaTree) { return &l.Metadata, &l.Items })
}

// ReclaimOptions say how a tree's quotas are reclaimed.
type ReclaimOptions struct {
	// DryRun ends nothing; the answer has the units that would end.
	DryRun bool
	// GracePeriodSeconds is the time that each unit has to stop; nil is the
	// server's default.
	GracePeriodSeconds *int64
}

// Reclaim ends units until no node of a tree is over its quota, and returns those units.
// The request is sent once: after a broken connection it may be repeated, and ends no unit
// that the first request did not have to end.
func (q QuotaTrees) Reclaim(ctx context.Context, name string, o ReclaimOptions) (*api.QuotaReclaim, error) {
	r := request{method: http.MethodPost, path: q.at(name, "/reclaim"), contentType: "application/json"}
	if o.DryRun {
		r.query = url.Values{"dryRun": {"true"}}
	}
	if o.GracePeriodSeconds != nil {
		r.body, _ = json.Marshal(api.ReclaimOptions{GracePeriodSeconds: o.GracePeriodSeconds}) // an integer always encodes
	}
	return call[api.QuotaReclaim](ctx, q.client, r)
}

// Rename renames a node of a tree. Units that run stay charged to it.
func (q QuotaTrees) Rename(ctx context.Context, name string, r api.QuotaRename) (*api.QuotaTree, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return call[api.QuotaTree](ctx, q.client, request{method: http.MethodPost, path: q.at(name, "/rename"), contentType: "application/json", body: body})
}

// QuotaForests are sets of trees.
type QuotaForests struct {
	quotaDocuments[api.QuotaForest]
}

// QuotaForests selects the forests.
func (c *Client) QuotaForests() QuotaForests {
	return QuotaForests{quotaDocuments[api.QuotaForest]{
		objects{client: c, path: collection("", "quotaforests")}, followed[api.QuotaForest](c, "quotaforests", ""), func(f *api.QuotaForest) string { return f.Metadata.Name },
	}}
}

// List returns forests ordered by name.
func (q QuotaForests) List(ctx context.Context, o ListOptions) (*api.QuotaForestList, error) {
	return listAll(ctx, q.objects, o, func(l *api.QuotaForestList) (*api.ListMeta, *[]api.QuotaForest) { return &l.Metadata, &l.Items })
}

// QuotaBindings say to which groups namespaces are charged; each has its
// namespace's name.
type QuotaBindings struct {
	quotaDocuments[api.QuotaBinding]
}

// QuotaBindings selects the bindings.
func (c *Client) QuotaBindings() QuotaBindings {
	return QuotaBindings{quotaDocuments[api.QuotaBinding]{
		objects{client: c, path: collection("", "quotabindings")}, followed[api.QuotaBinding](c, "quotabindings", ""), func(b *api.QuotaBinding) string { return b.Metadata.Name },
	}}
}

// List returns bindings ordered by name.
func (q QuotaBindings) List(ctx context.Context, o ListOptions) (*api.QuotaBindingList, error) {
	return listAll(ctx, q.objects, o, func(l *api.QuotaBindingList) (*api.ListMeta, *[]api.QuotaBinding) { return &l.Metadata, &l.Items })
}

// ExplainQuota says on which node of each tree an allocation or a job is counted,
// and which quota is short where it is not charged.
func (c *Client) ExplainQuota(ctx context.Context, namespace, name string) (*api.QuotaExplanation, error) {
	return call[api.QuotaExplanation](ctx, c, request{
		method: http.MethodGet, path: collection(namespace, "jobs") + "/" + url.PathEscape(name) + "/quota",
	})
}

// TryQuota says how admission would answer a consumer now. The consumer is a
// document of kind Consumer in JSON. The call has no effect.
func (c *Client) TryQuota(ctx context.Context, consumer []byte) (*api.QuotaDryRun, error) {
	return call[api.QuotaDryRun](ctx, c, request{
		method: http.MethodPost, path: "/api/v1/quota/dryruns", contentType: "application/json", body: consumer,
	})
}
