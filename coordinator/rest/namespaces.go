package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// routeSpaces registers the endpoints of tenants and namespaces. Everybody reads the
// own ones; admins change them.
func (h *handler) routeSpaces(v1 string) {
	tenants := documented[api.Tenant]{service.TenantDocuments(h.Service), clusterKey, nil}
	namespaces := documented[api.Namespace]{service.NamespaceDocuments(h.Service), func(c *call) (namespace, name string) { return "", c.namespace }, nil}
	h.route("GET "+v1+"/tenants", to(service.VerbList, service.KindTenants), h.listTenants)
	routeDocuments(h, v1+"/tenants", "/{name}", service.KindTenants, tenants)
	h.route("GET "+v1+"/namespaces", to(service.VerbList, service.KindNamespaces), h.listNamespaces)
	routeDocuments(h, v1+"/namespaces", "/{namespace}", service.KindNamespaces, namespaces)
}

func (h *handler) listTenants(c *call) (answer, error) {
	if status := listing(c, service.ListedTenants); status != nil {
		return answer{}, status
	}
	c.query.Fields = c.query.Fields.Own(c.caller, service.KindTenants)
	if c.query.watch {
		return watching(h, c, service.ListedTenants, objects.Tenants)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListTenants(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedTenants.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedTenants, api.KindTenant+"List", got.Metadata, items, more)
	})
}

func (h *handler) listNamespaces(c *call) (answer, error) {
	if status := listing(c, service.ListedNamespaces); status != nil {
		return answer{}, status
	}
	c.query.Fields = c.query.Fields.Own(c.caller, service.KindNamespaces)
	if c.query.watch {
		return watching(h, c, service.ListedNamespaces, objects.Namespaces)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListNamespaces(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedNamespaces.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedNamespaces, api.KindNamespace+"List", got.Metadata, items, more)
	})
}
