package rest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/service"
)

// WithGRPC hands gRPC's requests to api and all others to web. A call may wait as
// long as a request of REST may, unless AnswerBy sets another time.
func WithGRPC(api, web http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			web.ServeHTTP(w, r)
			return
		}
		by := &deadline{control: http.NewResponseController(w)}
		defer by.end()
		by.set(time.Now().Add(service.MaxWait + writeTimeout))
		api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), deadlineKey{}, by)))
	})
}

// AnswerBy sets the time by which the answer of a gRPC call must be sent, by the
// call's context. A time that has passed ends the call. The zero time is none, and the
// client may send further messages as long as the call lasts.
func AnswerBy(ctx context.Context, t time.Time) {
	if by, is := ctx.Value(deadlineKey{}).(*deadline); is {
		by.set(t)
	}
}

// deadlineKey is the context's key of a gRPC call's deadline.
type deadlineKey struct{}

// deadline is the time by which an answer must be sent. A handler of gRPC may live
// longer than its request; nothing may use the request's writer then.
type deadline struct {
	mu      sync.Mutex
	control *http.ResponseController // nil once the request is over
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.control != nil {
		// A test recorder has no deadline to set, hence the ignored error.
		_ = d.control.SetWriteDeadline(t)
		if t.IsZero() {
			_ = d.control.SetReadDeadline(t)
		}
	}
}

func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.control = nil
}
