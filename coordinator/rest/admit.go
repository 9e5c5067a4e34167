package rest

import (
	"context"
	"net/http"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// admit authenticates, authorises and reads the URL.
func (h *handler) admit(w http.ResponseWriter, r *http.Request, who access) (*call, *api.Status) {
	c := &call{w: w, r: r, namespace: r.PathValue("namespace"), name: r.PathValue("name")}
	token, hosts := service.BootstrapTokenIn(r.Header.Values("Authorization"))
	switch {
	case who == to(service.VerbCreate, service.KindNodes) && hosts && h.Identity != nil:
		c.bootstrapToken = token // which createNode judges, with the node's name
	case who == anyone:
		if status := h.countAnonymous(w.Header(), r); status != nil {
			return c, status
		}
	default:
		p, status := h.known(w, r)
		c.caller = p
		if status != nil {
			return c, status
		}
		if status := c.checkNames(who); status != nil { // a refusal here does not depend on the objects that exist
			return c, status
		}
		if status := h.authorize(c, who, p); status != nil {
			h.identify(c, p, who)
			service.Hidden(c.ctx()) // where it is a 404
			return c, status
		}
		h.identify(c, p, who)
		return c, nil
	}
	return c, c.checkNames(who)
}

// checkNames refuses names that no object can have.
func (c *call) checkNames(who access) *api.Status {
	if c.namespace != "" {
		if status := service.CheckNamespace(c.namespace); status != nil {
			return status
		}
	}
	if tree := c.r.PathValue("tree"); tree != "" {
		c.name = tree
		return service.CheckName(service.KindQuotaTrees, tree)
	}
	if domain := c.r.PathValue("domain"); domain != "" {
		c.name = domain + "/" + c.name
	}
	if c.name != "" {
		return service.CheckName(who.kind, c.name)
	}
	return nil
}

// identify notes the caller of a request, for the endpoint and for records.
func (h *handler) identify(c *call, p service.Principal, who access) {
	c.caller = p
	c.r = c.r.WithContext(service.WithCaller(c.ctx(), h.sender(c)))
	service.Begin(c.ctx(), verbOf(who, c.r), who.kind, c.namespace, c.name)
}

// authorize refuses a caller that may not use the endpoint.
func (h *handler) authorize(c *call, who access, p service.Principal) *api.Status {
	return h.Access.Authorize(p, verbOf(who, c.r), who.kind, placeOf(who, c), c.name)
}

// placeOf is the namespace, or the tenant, of a call.
func placeOf(who access, c *call) string {
	if who.kind == service.KindTenants {
		return c.name
	}
	return c.namespace
}

// verbOf is the verb of a request: a list with ?watch is a watch, where the kind can be
// watched.
func verbOf(who access, r *http.Request) service.Verb {
	if who.verb != service.VerbList || !(&call{r: r}).asks("watch") || service.Needs(service.VerbWatch, who.kind) == service.Nobody {
		return who.verb
	}
	if watch, err := strconv.ParseBool(r.URL.Query().Get("watch")); err != nil || !watch {
		return who.verb
	}
	return service.VerbWatch
}

// limit bounds a request's wait for the store. Long requests, and requests about the
// past, have no such bound.
func limit(c *call, who access, faults Store) (end func()) {
	verb := verbOf(who, c.r)
	if faults == nil || who == anyone || who.kind == service.KindHistory || who.kind == service.KindPast || verb == service.VerbLogs || verb == service.VerbExec || verb == service.VerbWatch {
		return func() {}
	}
	ctx, end := service.Limit(c.ctx(), faults, service.Bound{Changes: c.r.Method != http.MethodGet && c.r.Method != http.MethodHead, Waits: c.asks("wait")})
	c.r = c.r.WithContext(ctx)
	return end
}

// hold ends a request that lasts when its caller may not use the endpoint any more:
// the token was revoked or has expired, or its rights have changed.
func (h *handler) hold(c *call, who access) (end func()) {
	watches, waits := c.asks("watch") || who.verb == service.VerbLogs || who.verb == service.VerbExec, c.asks("wait")
	if who == anyone || !watches && !waits {
		return func() {}
	}
	// The handler changes the call meanwhile.
	proofs, before, verb, place, name := proofsOf(c.r), c.caller, verbOf(who, c.r), placeOf(who, c), c.name
	ctx, end := service.Hold(c.ctx(), h.Authenticator, func(ctx context.Context) (service.Principal, *api.Status) {
		p, status := service.Authenticate(ctx, h.Authenticator, proofs)
		if status == nil {
			status = h.Access.Authorize(p, verb, who.kind, place, name)
		}
		if status == nil && watches {
			status = service.SameRoles(before, p)
		}
		return p, status
	})
	c.r = c.r.WithContext(ctx)
	return end
}
