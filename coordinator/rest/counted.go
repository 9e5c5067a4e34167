package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// known authenticates the caller of a request and counts the request: by the caller's
// tenant, and without a valid token by its address. A request that another coordinator
// has counted and passed on is not counted again.
func (h *handler) known(w http.ResponseWriter, r *http.Request) (service.Principal, *api.Status) {
	counted := h.passedOn(r)
	p, refused := authenticate(h.Authenticator, r)
	if refused != nil {
		if refused.Code == http.StatusUnauthorized && !counted {
			if late := h.countAnonymous(w.Header(), r); late != nil {
				return p, late
			}
		}
		return p, refused
	}
	ProveConnection(r.Context())
	if counted {
		return p, nil
	}
	standing, refused := h.Gate.Count(p)
	showStanding(w.Header(), standing)
	if refused != nil {
		h.metrics.refused(throttleRate)
	}
	return p, refused
}

// passedOn reports whether another coordinator has passed a request on, with the
// proof of it.
func (h *handler) passedOn(r *http.Request) bool {
	by := r.Header.Get(hopHeader)
	return by != "" && h.Forward.PassedOn(by, r.Header.Get(requestIDHeader), r.Header.Get("Authorization"), r.Header.Get(hopProofHeader))
}

// countAnonymous counts a request without a valid token.
func (h *handler) countAnonymous(header http.Header, r *http.Request) *api.Status {
	address := addressOf(r)
	if address == "" {
		return nil // a connection without an address, as in a test
	}
	standing, refused := h.Gate.CountAnonymous(address)
	showStanding(header, standing)
	if refused != nil {
		h.metrics.refused(throttleRate)
	}
	return refused
}

// showStanding writes the headers of the specification. Their names are written as
// there: net/http would write X-Ratelimit-Limit.
func showStanding(header http.Header, s gate.Standing) {
	for name, value := range s.Headers {
		header[name] = []string{value}
	}
}
