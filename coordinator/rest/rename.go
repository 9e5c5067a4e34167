package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

func (h *handler) routeRenames(v1 string) {
	h.route("POST "+v1+"/quotatrees/{tree}/rename", to(service.VerbUpdate, service.KindQuotaTrees), h.renameQuotaNode)
}

func (h *handler) renameQuotaNode(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	r, status := api.DecodeQuotaRename(body)
	if status != nil {
		return answer{}, status
	}
	got, err := h.Service.RenameQuotaNode(c.ctx(), c.name, r)
	return h.quotaTrees().answered(200, got, err)
}
