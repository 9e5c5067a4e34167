package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// deadlines is a writer that notes its deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

// SetReadDeadline is that of http.ResponseController.
func (d *deadlines) SetReadDeadline(t time.Time) error { d.read = t; return nil }

// SetWriteDeadline is that of http.ResponseController.
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// A call that lasts takes messages beyond the time in which a body has to arrive.
func TestACallThatLastsMaySendFurtherMessages(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	call := func(within time.Time) {
		grpc := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { AnswerBy(r.Context(), within) })
		r := httptest.NewRequest(http.MethodPost, "/muster.api.v1.Jobs/Exec", http.NoBody)
		r.ProtoMajor, r.ContentLength = 2, -1
		r.Header.Set("Content-Type", "application/grpc")
		bodyDeadline(WithGRPC(grpc, http.NotFoundHandler())).ServeHTTP(w, r)
	}
	call(time.Now().Add(time.Hour))
	if w.read.IsZero() {
		t.Error("a call has no bound on its request")
	}
	if call(time.Time{}); !w.read.IsZero() || !w.write.IsZero() {
		t.Errorf("a call that lasts has to end its request by %v, and its answer by %v", w.read, w.write)
	}
}
