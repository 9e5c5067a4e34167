package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeIdentity registers the admins' endpoints about identities.
func (h *handler) routeIdentity(v1 string) {
	h.route("POST "+v1+"/bootstraptokens", to(service.VerbCreate, service.KindTokens), h.identified(h.named(h.createBootstrapToken)))
	h.route("GET "+v1+"/bootstraptokens", to(service.VerbList, service.KindTokens), h.identified(func(c *call) (answer, error) {
		return found(h.Identity.ListBootstrapTokens(c.ctx()))
	}))
	h.route("DELETE "+v1+"/bootstraptokens/{name}", to(service.VerbDelete, service.KindTokens), h.identified(h.required(func(c *call, require api.Preconditions) (answer, error) {
		return found(h.Identity.DeleteBootstrapToken(c.ctx(), c.name, require))
	})))
	h.route("GET "+v1+"/authorities", to(service.VerbList, service.KindAuthorities), h.identified(func(c *call) (answer, error) {
		return found(h.Identity.ListAuthorities(c.ctx()))
	}))
	h.route("POST "+v1+"/authorities", to(service.VerbCreate, service.KindAuthorities), h.identified(func(c *call) (answer, error) {
		a, err := h.Identity.RotateAuthority(c.ctx())
		if err != nil {
			return answer{}, err
		}
		return answer{code: http.StatusCreated, body: a}, nil
	}))
	h.route("DELETE "+v1+"/authorities/{name}", to(service.VerbDelete, service.KindAuthorities), h.identified(h.required(h.retireAuthority), "force"))
	h.route("POST "+v1+"/operatorcertificates", to(service.VerbCreate, service.KindOperators), h.identified(h.named(h.certifyOperator)))
	h.route("GET "+v1+"/operatorcertificates", to(service.VerbList, service.KindOperators), h.identified(func(c *call) (answer, error) {
		return found(h.Identity.ListOperators(c.ctx()))
	}))
	h.route("DELETE "+v1+"/operatorcertificates/{name}", to(service.VerbDelete, service.KindOperators), h.identified(h.required(func(c *call, require api.Preconditions) (answer, error) {
		return found(h.Identity.RevokeOperator(c.ctx(), c.name, c.caller.Name, require))
	})))
	h.route("GET "+v1+"/nodebans", to(service.VerbList, service.KindBans), h.identified(func(c *call) (answer, error) {
		return found(h.Identity.ListBans(c.ctx()))
	}))
	h.route("POST "+v1+"/nodes/{name}/ban", to(service.VerbCreate, service.KindBans), h.identified(h.named(h.banNode)))
	h.route("DELETE "+v1+"/nodes/{name}/ban", to(service.VerbDelete, service.KindBans), h.identified(h.required(func(c *call, require api.Preconditions) (answer, error) {
		return found(h.Identity.UnbanNode(c.ctx(), c.name, c.caller.Name, require))
	})))
}

// identified refuses where there are no identities, and parameters that the
// endpoint does not know.
func (h *handler) identified(serve endpoint, parameters ...string) endpoint {
	return func(c *call) (answer, error) {
		if h.Identity == nil {
			return answer{}, service.ErrNoIdentity
		}
		if status := c.parameters(parameters...); status != nil {
			return answer{}, status
		}
		return serve(c)
	}
}

func found[T any](v *T, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return ok(v), nil
}

// named serves an endpoint that records the caller's name.
func (h *handler) named(serve func(c *call, by string) (answer, error)) endpoint {
	return func(c *call) (answer, error) {
		return serve(c, c.caller.Name)
	}
}

// required serves a DELETE whose body may have preconditions.
func (h *handler) required(serve func(c *call, require api.Preconditions) (answer, error)) endpoint {
	return func(c *call) (answer, error) {
		require, status := h.preconditions(c)
		if status != nil {
			return answer{}, status
		}
		return serve(c, require)
	}
}

func (h *handler) banNode(c *call, by string) (answer, error) {
	body, status := h.optional(c)
	if status != nil {
		return answer{}, status
	}
	reason, status := api.DecodeNodeBan(c.name, body)
	if status != nil {
		return answer{}, status
	}
	return found(h.Identity.BanNode(c.ctx(), c.name, reason, by))
}

func (h *handler) createBootstrapToken(c *call, by string) (answer, error) {
	body, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	wish, ttl, status := api.DecodeBootstrapToken(body)
	if status != nil {
		return answer{}, status
	}
	made, err := h.Identity.PutBootstrapToken(c.ctx(), wish, ttl, by)
	if err != nil {
		return answer{}, err
	}
	return answer{code: http.StatusCreated, body: made}, nil
}

func (h *handler) retireAuthority(c *call, require api.Preconditions) (answer, error) {
	if err := h.Identity.RetireAuthority(c.ctx(), c.name, c.query.force, require); err != nil {
		return answer{}, err
	}
	return found(h.Identity.ListAuthorities(c.ctx()))
}

func (h *handler) certifyOperator(c *call, by string) (answer, error) {
	body, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	wish, ttl, status := api.DecodeOperatorCertificate(body)
	if status != nil {
		return answer{}, status
	}
	made, err := h.Identity.CertifyOperator(c.ctx(), wish, ttl, by)
	if err != nil {
		return answer{}, err
	}
	return answer{code: http.StatusCreated, body: made}, nil
}
