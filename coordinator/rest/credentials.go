package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// routeCredentials registers the endpoints of access tokens and role bindings. A
// tenant-admin sees and changes those of the own tenant.
func (h *handler) routeCredentials(v1 string) {
	tokens := v1 + "/tokens"
	h.route("POST "+tokens, to(service.VerbCreate, service.KindAccessTokens), h.credentialed(h.createToken))
	h.route("GET "+tokens, to(service.VerbList, service.KindAccessTokens), h.listTokens)
	h.route("GET "+tokens+"/{name}", to(service.VerbGet, service.KindAccessTokens), h.credentialed(func(c *call) (answer, error) {
		return found(h.Credentials.GetToken(c.ctx(), c.name))
	}))
	h.route("POST "+tokens+"/{name}/rotate", to(service.VerbRotate, service.KindAccessTokens), h.credentialed(h.rotateToken))
	h.route("DELETE "+tokens+"/{name}", to(service.VerbDelete, service.KindAccessTokens), h.revokeToken)

	bindings := documented[api.RoleBinding]{service.RoleBindingDocuments(h.Credentials), clusterKey, nil}
	h.route("GET "+v1+"/rolebindings", to(service.VerbList, service.KindRoleBindings), h.listRoleBindings)
	routeDocuments(h, v1+"/rolebindings", "/{name}", service.KindRoleBindings, bindings)
}

// credentialed refuses parameters.
func (h *handler) credentialed(serve endpoint) endpoint {
	return func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		return serve(c)
	}
}

func (h *handler) createToken(c *call) (answer, error) {
	body, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	wish, ttl, status := api.DecodeAccessToken(body)
	if status != nil {
		return answer{}, status
	}
	made, err := h.Credentials.CreateToken(c.ctx(), wish, ttl)
	if err != nil {
		return answer{}, err
	}
	return answer{code: http.StatusCreated, body: made}, nil
}

func (h *handler) rotateToken(c *call) (answer, error) {
	body, status := h.optional(c)
	if status != nil {
		return answer{}, status
	}
	overlap, status := api.DecodeRotateOptions(body)
	if status != nil {
		return answer{}, status
	}
	return found(h.Credentials.RotateToken(c.ctx(), c.name, overlap))
}

func (h *handler) revokeToken(c *call) (answer, error) {
	require, status := h.removal(c)
	if status != nil {
		return answer{}, status
	}
	return found(h.Credentials.RevokeToken(c.ctx(), c.name, require))
}

func (h *handler) listTokens(c *call) (answer, error) {
	if status := listing(c, service.ListedAccessTokens); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		c.query.SeenBy(c.caller)
		return watching(h, c, service.ListedAccessTokens, objects.AccessTokens)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Credentials.ListTokens(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedAccessTokens.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedAccessTokens, api.KindAccessToken+"List", got.Metadata, items, more)
	})
}

func (h *handler) listRoleBindings(c *call) (answer, error) {
	if status := listing(c, service.ListedRoleBindings); status != nil {
		return answer{}, status
	}
	if c.query.watch {
		c.query.SeenBy(c.caller)
		return watching(h, c, service.ListedRoleBindings, objects.RoleBindings)
	}
	return h.listing(c, func() (answer, error) {
		got, err := h.Credentials.ListRoleBindings(c.ctx())
		if err != nil {
			return answer{}, err
		}
		items, more := service.ListedRoleBindings.Cut(got.Items, &c.query.Selection)
		return listAnswer(service.ListedRoleBindings, api.KindRoleBinding+"List", got.Metadata, items, more)
	})
}
