package rest_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// wide is a service whose snapshot is larger than the room of all answers.
type wide struct{ *resttest.Cluster }

const (
	wideBytes = 20 << 20
	wideTakes = 40 * time.Second // longer than other answers may take
)

func (wide) TakeSnapshot(context.Context) (*api.ClusterSnapshot, error) {
	time.Sleep(wideTakes) // of the bubble's clock
	return &api.ClusterSnapshot{Kind: "ClusterSnapshot", Document: strings.Repeat("x", wideBytes)}, nil
}

// A snapshot is sent whatever its size, and one at a time; its reader has minutes for it.
// The next one comes after the reader has taken it, and after a reader was cut.
func TestALargeSnapshotIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		interval, took time.Duration
		whole          bool
	}{
		"a slow reader":                {100 * time.Millisecond, 64 * time.Second, true},
		"a reader that takes nothing":  {0, 5 * time.Second, false},
		"a reader that takes too long": {4 * time.Second, 5 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := rest.NewHandler(rest.Config{Service: wide{resttest.New(time.Now)}, Authenticator: service.StaticToken(token)})
				get := func() *httptest.ResponseRecorder {
					w := httptest.NewRecorder()
					ask(h, w, "GET", "/api/v1/snapshot", nil)
					return w
				}
				first, began, done := newReader(c.interval), time.Now(), make(chan time.Time, 1)
				go func() {
					ask(h, first, "GET", "/api/v1/snapshot", nil)
					done <- time.Now()
				}()
				synctest.Wait()
				if first.deadline.Sub(began) <= wideTakes {
					t.Errorf("the connection ends %s after the request, before the answer begins", first.deadline.Sub(began))
				}
				if w := get(); w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "another snapshot") {
					t.Errorf("a second one: %d %s", w.Code, w.Body)
				}
				if took := (<-done).Sub(began); took < wideTakes+c.took || took > wideTakes+c.took+time.Second || (first.err == nil) != c.whole {
					t.Errorf("the first one ended after %s with %v, want %s", took, first.err, c.took)
				}
				if w := get(); w.Code != 200 || w.Body.Len() < wideBytes {
					t.Errorf("the next one: %d with %d bytes", w.Code, w.Body.Len())
				}
			})
		})
	}
}
