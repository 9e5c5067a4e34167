package rest

import (
	"net/http"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/service"
)

// WithGRPC hands gRPC's requests to api and all others to web. A call may wait as
// long as a request of REST may.
func WithGRPC(api, web http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			web.ServeHTTP(w, r)
			return
		}
		// A test recorder has no deadline to set, hence the ignored error.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(service.MaxWait + writeTimeout))
		api.ServeHTTP(w, r)
	})
}
