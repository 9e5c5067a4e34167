package rest

import "github.com/musterd/muster/coordinator/service"

// routeSnapshot registers the export of the scheduling state.
func (h *handler) routeSnapshot(v1 string) {
	h.route("GET "+v1+"/snapshot", to(service.VerbGet, service.KindSnapshot), func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		return found(h.Service.TakeSnapshot(c.ctx()))
	})
}
