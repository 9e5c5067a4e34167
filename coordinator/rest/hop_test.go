package rest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// callers is a Service that keeps the callers of creations.
type callers struct {
	service.Service
	seen []service.Caller
}

func (s *callers) CreateAllocation(ctx context.Context, _ service.Create, a *api.Allocation) (*api.Allocation, error) {
	s.seen = append(s.seen, service.CallerOf(ctx))
	return a, nil
}

// The leader knows the address of the client of a request that a coordinator has passed
// on, by the coordinator's proof. Without the proof the address is the connection's.
func TestOnlyCoordinatorsSayWhereARequestCameFrom(t *testing.T) {
	const client, connection = "198.51.100.7:40212", "192.0.2.1:1234"
	forward := func(id, key string) *service.Forward { return service.NewForward(id, nil, 0, nil).ProveBy(key) }
	proof := func(by, key, address string) string {
		return forward(by, key).HopProof(service.Hop{RequestID: "r-1", Authorization: "Bearer secret", Address: address})
	}
	for name, c := range map[string]struct {
		by, address, proof   string
		wantAddress, wantVia string
	}{
		"a client asks the leader":                 {wantAddress: connection},
		"a coordinator passes the request on":      {"c-2", client, proof("c-2", "admin's", client), client, "c-2"},
		"a client says that it is a coordinator":   {"c-2", client, "", connection, ""},
		"a client has guessed the key":             {"c-2", client, proof("c-2", "guessed", client), connection, ""},
		"the address is not the one of the proof":  {"c-2", "203.0.113.9:1", proof("c-2", "admin's", client), connection, ""},
		"the name is not the one of the proof":     {"c-3", client, proof("c-2", "admin's", client), connection, ""},
		"a coordinator does not know the address":  {"c-2", "", proof("c-2", "admin's", ""), "", "c-2"},
		"a client names an address and no request": {"", client, "", connection, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &callers{}
			h := NewHandler(Config{Service: s, Authenticator: service.StaticToken("secret"), Forward: forward("c-1", "admin's")})
			r := httptest.NewRequest(http.MethodPost, allocations, strings.NewReader(someAllocation))
			for header, value := range map[string]string{
				"Authorization": "Bearer secret", "Content-Type": "application/json", requestIDHeader: "r-1",
				hopHeader: c.by, clientHeader: c.address, hopProofHeader: c.proof,
			} {
				r.Header.Set(header, value)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusCreated || len(s.seen) != 1 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if got := s.seen[0]; got.Address != c.wantAddress || got.Via != c.wantVia {
				t.Errorf("the caller is at %q via %q, want %q via %q", got.Address, got.Via, c.wantAddress, c.wantVia)
			}
		})
	}
}
