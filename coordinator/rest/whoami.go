package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeCallers registers the endpoints that tell callers who they are, and people where
// to log in.
func (h *handler) routeCallers(v1 string) {
	h.route("GET "+v1+"/whoami", to(service.VerbGet, service.KindWhoAmI), func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		return ok(service.WhoAmI(c.caller)), nil
	})
	h.route("GET "+v1+"/login", anyone, func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		if h.Login == nil {
			return answer{}, api.Errorf(http.StatusNotFound, "this cluster has no identity provider: use an access token, which an administrator makes by muster token create")
		}
		shown := *h.Login
		shown.APIVersion, shown.Kind = api.APIVersion, api.KindLoginMethod
		return ok(shown), nil
	})
}
