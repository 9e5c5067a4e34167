package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// revocable lets in the bearers of any token until the test revokes all tokens.
type revocable struct {
	mu      sync.Mutex
	over    bool
	changed chan struct{}
}

func (r *revocable) Authenticate(context.Context, string) (service.Principal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return service.Principal{}, errors.New("unknown token")
	}
	return service.Principal{Name: "ada", Grants: []service.Grant{{Role: service.Editor, Tenant: "ml"}}}, nil
}

func (r *revocable) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *revocable) revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	close(r.changed)
}

// waiting is a Service whose objects never run: a request with wait goes on until its
// context ends.
type waiting struct {
	service.Service
	asked chan struct{} // closed once the request waits
}

func (w waiting) GetAllocation(ctx context.Context, _, _ string, _ time.Duration) (*api.Allocation, error) {
	close(w.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (w waiting) CreateAllocation(ctx context.Context, _ service.Create, _ *api.Allocation) (*api.Allocation, error) {
	close(w.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A request that waits for its object ends when the token of its caller is revoked, with
// the 401 of the token.
func TestAWaitEndsWithItsToken(t *testing.T) {
	for name, c := range map[string]struct{ method, path, body string }{
		"a get that waits":      {http.MethodGet, "/api/v1/namespaces/ml/allocations/a?wait=60s", ""},
		"a creation that waits": {http.MethodPost, "/api/v1/namespaces/ml/allocations?wait=60s", someAllocation},
	} {
		t.Run(name, func(t *testing.T) {
			door, asked := &revocable{changed: make(chan struct{})}, make(chan struct{})
			h := NewHandler(Config{Service: waiting{asked: asked}, Authenticator: door})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the client of a wait without an end goes away
			defer cancel()
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer any")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				h.ServeHTTP(w, r)
			}()
			<-asked
			door.revoke()
			<-answered
			if w.Code != http.StatusUnauthorized {
				t.Errorf("answered with %d %s, want 401", w.Code, w.Body)
			}
		})
	}
}
