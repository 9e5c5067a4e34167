package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeQuotaMode registers the endpoints of the mode of quota trees. Any tenant may
// know the mode, since the mode decides whether its work is refused.
func (h *handler) routeQuotaMode(v1 string) {
	h.route("GET "+v1+"/quota", to(service.VerbGet, service.KindQuotaModes), h.getQuotaMode)
	h.route("PATCH "+v1+"/quota", to(service.VerbPatch, service.KindQuotaModes), h.patchQuotaMode)
}

func (h *handler) getQuotaMode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	got, err := h.Service.GetQuotaMode(c.ctx())
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}

func (h *handler) patchQuotaMode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.document(c, typeMergePatch)
	if status != nil {
		return answer{}, status
	}
	p, status := api.DecodeQuotaModePatch(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.PatchQuotaMode(c.ctx(), p, c.caller.Name)
	if err != nil {
		return answer{}, err
	}
	h.showNotices(c.w.Header()) // as they are after the change
	return ok(got), nil
}

// showNotices gives an answer the warnings of the moment.
func (h *handler) showNotices(header map[string][]string) {
	if h.Notices != nil {
		delete(header, "Warning")
		addWarnings(header, h.Notices())
	}
}
