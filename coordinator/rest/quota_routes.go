package rest

import (
	"cmp"
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeQuotas registers the endpoints of quota. Any tenant sees trees and
// forests, as it sees nodes, and its own namespace's limits; admins alone
// change them.
func (h *handler) routeQuotas(v1 string) {
	quotas, trees, forests, bindings := h.resourceQuotas(), h.quotaTrees(), h.quotaForests(), h.quotaBindings()
	inNamespace := v1 + "/namespaces/{namespace}/resourcequotas"
	h.route("GET "+inNamespace, to(service.VerbList, service.KindResourceQuotas), h.listResourceQuotas)
	h.route("GET "+v1+"/resourcequotas", to(service.VerbList, service.KindResourceQuotas), h.listResourceQuotas)
	h.route("GET "+inNamespace+"/{name}/status", to(service.VerbGet, service.KindResourceQuotas), h.getResourceQuotaStatus)
	routeDocuments(h, inNamespace, "/{name}", service.KindResourceQuotas, quotas)

	h.route("GET "+v1+"/quotatrees", to(service.VerbList, service.KindQuotaTrees), h.listQuotaTrees)
	h.route("GET "+v1+"/quotatrees/{tree}/status", to(service.VerbGet, service.KindQuotaTrees), h.getQuotaTreeStatus)
	h.route("POST "+v1+"/quotatrees/{tree}/reclaim", to(service.VerbReclaim, service.KindQuotaTrees), h.reclaimQuota)
	routeDocuments(h, v1+"/quotatrees", "/{tree}", service.KindQuotaTrees, trees)

	h.route("GET "+v1+"/quotaforests", to(service.VerbList, service.KindQuotaForests), h.listQuotaForests)
	routeDocuments(h, v1+"/quotaforests", "/{tree}", service.KindQuotaForests, forests)

	h.route("GET "+v1+"/quotabindings", to(service.VerbList, service.KindQuotaBindings), h.listQuotaBindings)
	routeDocuments(h, v1+"/quotabindings", "/{namespace}", service.KindQuotaBindings, bindings)

	h.route("POST "+v1+"/quota/dryruns", to(service.VerbTry, service.KindConsumers), h.tryQuota)
	h.route("GET "+v1+"/namespaces/{namespace}/allocations/{name}/quota", to(service.VerbExplain, service.KindAllocations), h.explainQuota)
	h.route("GET "+v1+"/namespaces/{namespace}/jobs/{name}/quota", to(service.VerbExplain, service.KindJobs), h.explainQuota)
}

// routeDocuments registers a kind's endpoints, but for its list.
func routeDocuments[T api.QuotaDocument](h *handler, collection, one string, kind service.Kind, d documented[T]) {
	h.route("POST "+collection, to(service.VerbCreate, kind), d.post(h))
	h.route("GET "+collection+one, to(service.VerbGet, kind), d.one)
	h.route("PUT "+collection+one, to(service.VerbUpdate, kind), d.put(h))
	h.route("PATCH "+collection+one, to(service.VerbPatch, kind), d.patch(h))
	h.route("DELETE "+collection+one, to(service.VerbDelete, kind), d.delete)
}

func (h *handler) resourceQuotas() documented[api.ResourceQuota] {
	return documented[api.ResourceQuota]{
		decode: api.DecodeResourceQuota,
		meta:   func(q *api.ResourceQuota) *api.ObjectMeta { return &q.Metadata },
		typed: func(q *api.ResourceQuota) {
			q.APIVersion, q.Kind = cmp.Or(q.APIVersion, api.APIVersion), cmp.Or(q.Kind, api.KindResourceQuota)
		},
		bare:         func(q *api.ResourceQuota) { q.Status = api.ResourceQuotaStatus{} },
		key:          func(c *call) (namespace, name string) { return c.namespace, c.name },
		recordedOnly: (*api.ResourceQuota).RecordedOnly,
		get:          h.Service.GetResourceQuota,
		create:       h.Service.CreateResourceQuota,
		update:       h.Service.UpdateResourceQuota,
		remove:       h.Service.DeleteResourceQuota,
	}
}

func (h *handler) quotaTrees() documented[api.QuotaTree] {
	return documented[api.QuotaTree]{
		decode: api.DecodeQuotaTree,
		meta:   func(t *api.QuotaTree) *api.ObjectMeta { return &t.Metadata },
		typed: func(t *api.QuotaTree) {
			t.APIVersion, t.Kind = cmp.Or(t.APIVersion, api.APIVersion), cmp.Or(t.Kind, api.KindQuotaTree)
		},
		bare:   func(t *api.QuotaTree) { t.Status = api.QuotaTreeStatus{} },
		key:    clusterKey,
		get:    named(h.Service.GetQuotaTree),
		create: puts(h.Service.PutQuotaTree, true),
		update: puts(h.Service.PutQuotaTree, false),
		remove: named(h.Service.DeleteQuotaTree),
	}
}

func (h *handler) quotaForests() documented[api.QuotaForest] {
	return documented[api.QuotaForest]{
		decode: api.DecodeQuotaForest,
		meta:   func(f *api.QuotaForest) *api.ObjectMeta { return &f.Metadata },
		typed: func(f *api.QuotaForest) {
			f.APIVersion, f.Kind = cmp.Or(f.APIVersion, api.APIVersion), cmp.Or(f.Kind, api.KindQuotaForest)
		},
		bare:   func(*api.QuotaForest) {},
		key:    clusterKey,
		get:    named(h.Service.GetQuotaForest),
		create: puts(h.Service.PutQuotaForest, true),
		update: puts(h.Service.PutQuotaForest, false),
		remove: named(h.Service.DeleteQuotaForest),
	}
}

func (h *handler) quotaBindings() documented[api.QuotaBinding] {
	return documented[api.QuotaBinding]{
		decode: api.DecodeQuotaBinding,
		meta:   func(b *api.QuotaBinding) *api.ObjectMeta { return &b.Metadata },
		typed: func(b *api.QuotaBinding) {
			b.APIVersion, b.Kind = cmp.Or(b.APIVersion, api.APIVersion), cmp.Or(b.Kind, api.KindQuotaBinding)
		},
		bare:   func(*api.QuotaBinding) {},
		key:    func(c *call) (namespace, name string) { return "", c.namespace },
		get:    named(h.Service.GetQuotaBinding),
		create: puts(h.Service.PutQuotaBinding, true),
		update: puts(h.Service.PutQuotaBinding, false),
		remove: named(h.Service.DeleteQuotaBinding),
	}
}

func clusterKey(c *call) (namespace, name string) { return "", c.name }

// named adapts a method of objects without a namespace.
func named[T any](f func(ctx context.Context, name string) (*T, error)) func(context.Context, string, string) (*T, error) {
	return func(ctx context.Context, _, name string) (*T, error) { return f(ctx, name) }
}

func puts[T any](f func(ctx context.Context, v *T, create bool) (*T, error), create bool) func(context.Context, *T) (*T, error) {
	return func(ctx context.Context, v *T) (*T, error) { return f(ctx, v, create) }
}
