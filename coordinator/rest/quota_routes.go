package rest

import (
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
	h.routeRenames(v1)
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
	h.route("DELETE "+collection+one, to(service.VerbDelete, kind), d.delete(h))
}

func (h *handler) resourceQuotas() documented[api.ResourceQuota] {
	return documented[api.ResourceQuota]{service.ResourceQuotas(h.Service), func(c *call) (namespace, name string) { return c.namespace, c.name }, []string{AllowUnknownResources}}
}

func (h *handler) quotaTrees() documented[api.QuotaTree] {
	return documented[api.QuotaTree]{service.QuotaTrees(h.Service), clusterKey, []string{AllowUnknownResources}}
}

func (h *handler) quotaForests() documented[api.QuotaForest] {
	return documented[api.QuotaForest]{service.QuotaForests(h.Service), clusterKey, nil}
}

func (h *handler) quotaBindings() documented[api.QuotaBinding] {
	return documented[api.QuotaBinding]{service.QuotaBindings(h.Service), func(c *call) (namespace, name string) { return "", c.namespace }, nil}
}

func clusterKey(c *call) (namespace, name string) { return "", c.name }
