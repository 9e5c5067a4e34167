package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// routeResources registers the endpoints of the names of resources. A name with a
// domain is two segments of the path, resources/nvidia.com/gpu.
func (h *handler) routeResources(v1 string) {
	const kind = service.KindResources
	d := documented[api.Resource]{service.ResourceDocuments(h.Service), clusterKey, nil}
	all := v1 + "/resources"
	h.route("GET "+all, to(service.VerbList, kind), h.listResources)
	h.route("POST "+all, to(service.VerbCreate, kind), d.post(h))
	for _, one := range []string{"/{name}", "/{domain}/{name}"} {
		h.route("GET "+all+one, to(service.VerbGet, kind), d.one)
		h.route("PUT "+all+one, to(service.VerbUpdate, kind), d.put(h))
		h.route("PATCH "+all+one, to(service.VerbPatch, kind), d.patch(h))
		h.route("DELETE "+all+one, to(service.VerbDelete, kind), d.delete(h))
	}
}

func (h *handler) listResources(c *call) (answer, error) {
	if status := listing(c, service.ListedResources); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedResources, objects.Resources)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Service.ListResources(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedResources.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedResources, api.KindResource+"List", got.Metadata, items, more)
	})
}
