package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeFeatureLevel registers the endpoints of the feature level.
func routeFeatureLevel(h *handler, v1 string) {
	h.route("GET "+v1+"/featurelevel", to(service.VerbGet, service.KindFeatureLevels), func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		return found(h.FeatureLevels.GetFeatureLevel(c.ctx()))
	})
	h.route("PATCH "+v1+"/featurelevel", to(service.VerbPatch, service.KindFeatureLevels), func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		body, status := h.document(c, typeMergePatch)
		if status != nil {
			return answer{}, status
		}
		p, status := api.DecodeFeatureLevelPatch(body)
		if status != nil {
			return answer{}, status
		}
		return found(h.FeatureLevels.RaiseFeatureLevel(c.ctx(), p, c.caller.Name))
	})
}
