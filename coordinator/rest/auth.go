package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// authenticate returns the caller or a 401 that names the missing part.
func authenticate(a service.Authenticator, r *http.Request) (service.Principal, *api.Status) {
	return service.Authenticate(r.Context(), a, proofsOf(r))
}

// proofsOf are the proofs of a request.
func proofsOf(r *http.Request) service.Proofs {
	return service.Proofs{Authorization: r.Header.Values("Authorization"), Chain: service.ChainOf(r.TLS), PassedOn: r.Header.Get(certificateHeader)}
}
