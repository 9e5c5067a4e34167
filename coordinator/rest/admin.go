package rest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/musterd/muster/coordinator/service"
)

// AdminOnly serves the cluster's metrics, which h has, to operators and administrators,
// and others a Status: 401 without a good token, 403 for anybody else. Each refusal goes
// to the audit.
func AdminOnly(a service.Authenticator, audits service.Audits, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := service.RequestID(r.Header.Get(requestIDHeader))
		w.Header().Set(requestIDHeader, id)
		p, status := authenticate(a, r)
		if status == nil {
			status = service.Access{}.Authorize(p, service.VerbGet, service.KindMetrics, "", "")
		}
		if status == nil {
			h.ServeHTTP(w, r)
			return
		}
		sender := service.Caller{Principal: p, RequestID: id, Address: r.RemoteAddr}
		service.NoteRefused(r.Context(), audits, service.RefusedRequest(sender, service.VerbGet, service.KindMetrics, "", ""), status)
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
