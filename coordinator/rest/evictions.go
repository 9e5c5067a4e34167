package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

func (h *handler) routeEvictions(v1 string) {
	h.route("POST "+v1+"/namespaces/{namespace}/preemptions", to(service.VerbCreate, service.KindPreemptions), h.preempt)
	h.route("GET "+v1+"/nodes/{name}/evictions", to(service.VerbList, service.KindEvictions), h.listEvictions)
	h.route("POST "+v1+"/nodes/{name}/drain", to(service.VerbDrain, service.KindNodes), h.drain)
}

func (h *handler) preempt(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	p, status := api.DecodePreemption(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.PreemptAllocation(c.ctx(), c.namespace, service.Notice(p, c.caller))
	if err != nil {
		return answer{}, err
	}
	return answer{code: http.StatusCreated, body: got}, nil
}

func (h *handler) drain(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.optional(c)
	if status != nil {
		return answer{}, status
	}
	o, status := api.DecodeDrainOptions(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.DrainNode(c.ctx(), c.name, o)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}
