package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/musterd/muster/coordinator/service"
)

// AdminOnly serves the cluster's metrics, which h has, to administrators, and
// others a Status: 401 without a good token, 403 for anybody else.
func AdminOnly(a service.Authenticator, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, status := authenticate(a, r)
		if status == nil {
			status = service.Access{}.Authorize(p, service.VerbGet, service.KindMetrics, "", "")
		}
		if status == nil {
			h.ServeHTTP(w, r)
			return
		}
		text, err := json.Marshal(status)
		if err != nil {
			panic(fmt.Sprintf("rest: a status of %d: %v", status.Code, err))
		}
		w.Header().Set("Content-Type", "application/json")
		if status.Code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="muster"`)
		}
		w.WriteHeader(status.Code)
		_, _ = w.Write(text) // a client that has gone needs no answer
	})
}
