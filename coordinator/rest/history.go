package rest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeHistory registers the endpoints of the history's state.
func (h *handler) routeHistory(v1 string) {
	h.route("GET "+v1+"/history/status", to(service.VerbGet, service.KindHistory), func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		return found(h.Histories.HistoryStatus(c.ctx()))
	})
	h.route("GET "+v1+"/history/verify", to(service.VerbGet, service.KindHistory), h.reported(service.Histories.VerifyHistory))
	h.route("POST "+v1+"/history/rebuild", to(service.VerbUpdate, service.KindHistory), h.reported(service.Histories.RebuildHistory))
	h.route("POST "+v1+"/history/prune", to(service.VerbUpdate, service.KindHistory), func(c *call) (answer, error) {
		if status := c.parameters("dryRun"); status != nil {
			return answer{}, status
		}
		return found(h.Histories.PruneHistory(c.ctx(), c.query.dryRun))
	})
}

func (h *handler) reported(ask func(service.Histories, context.Context) (*api.HistoryReport, error)) func(*call) (answer, error) {
	return func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		return found(ask(h.Histories, c.ctx()))
	}
}
