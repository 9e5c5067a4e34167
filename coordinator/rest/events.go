package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// routeEvents registers the endpoints of events. Those of nodes are in no namespace,
// and for admins.
func (h *handler) routeEvents(v1 string) {
	list, get := to(service.VerbList, service.KindEvents), to(service.VerbGet, service.KindEvents)
	h.route("GET "+v1+"/events", list, h.listEvents)
	h.route("GET "+v1+"/events/{name}", get, h.getEvent)
	h.route("GET "+v1+"/namespaces/{namespace}/events", list, h.listEvents)
	h.route("GET "+v1+"/namespaces/{namespace}/events/{name}", get, h.getEvent)
}

func (h *handler) listEvents(c *call) (answer, error) {
	if status := listing(c, service.ListedEvents); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		return watching(h, c, service.ListedEvents, objects.Events)
	}
	return h.listing(c, func() (answer, error) {
		items, meta, more, err := service.ListEvents(c.ctx(), h.Service, c.namespace, &c.query.Selection)
		if err != nil {
			return answer{}, err
		}
		return listAnswer(service.ListedEvents, api.KindEvent+"List", meta, items, more)
	})
}

func (h *handler) getEvent(c *call) (answer, error) {
	if status := c.reading(); status != nil {
		return answer{}, status
	}
	got, err := h.Service.GetEvent(c.ctx(), c.namespace, c.name)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}
