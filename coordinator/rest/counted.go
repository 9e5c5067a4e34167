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
	_, counted := h.hopOf(r)
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

// hopIn is the hop in the headers of a request, which anybody can send.
func hopIn(header http.Header) service.Hop {
	return service.Hop{
		By: header.Get(hopHeader), RequestID: header.Get(requestIDHeader), Authorization: header.Get("Authorization"), Certificate: header.Get(certificateHeader), Address: header.Get(clientHeader),
	}
}

// hopOf is the hop of a request that another coordinator has passed on, and has proven
// to have passed on.
func (h *handler) hopOf(r *http.Request) (hop service.Hop, proven bool) {
	hop = hopIn(r.Header)
	return hop, hop.By != "" && h.Forward.PassedOn(hop, r.Header.Get(hopProofHeader))
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
