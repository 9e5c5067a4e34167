package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// newCrowd knows the tenants by tokens of their names, and the admin.
func newCrowd() service.Authenticator {
	return service.AnyOf(service.StaticToken("admin"), tenants{"ml-team": true, "speech": true})
}

// tenants are the tokens that are good.
type tenants map[string]bool

func (a tenants) Authenticate(_ context.Context, token string) (service.Principal, error) {
	if !a[token] {
		return service.Principal{}, http.ErrNoCookie // any error
	}
	return service.Principal{Name: "ada", Tenant: resource.TenantID(token), Grants: []service.Grant{{Role: service.Editor, Tenant: resource.TenantID(token)}}}, nil
}

// counting is a handler whose tenants may send a few requests in a minute.
func counting(requests int) http.Handler {
	return NewHandler(Config{Service: struct{ service.Service }{}, Authenticator: newCrowd(), Gate: gate.New(&gate.Rates{Requests: requests})})
}

// get asks for a path that needs no service.
func get(t *testing.T, h http.Handler, token, path string, header ...string) (*httptest.ResponseRecorder, *api.Status) {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	status := new(api.Status)
	if w.Code/100 != 2 {
		if err := json.Unmarshal(w.Body.Bytes(), status); err != nil {
			t.Fatal(err)
		}
	}
	return w, status
}

// forbidden is a path that ml-team may not use: it is answered without a service.
const forbidden = "/api/v1/authorities"

// With 1,000 requests in a minute the 1,001st gets the specification's answer, and each
// answer has its headers.
func TestTheAnswerBeyondTheRateIsTheSpecifications(t *testing.T) {
	h := counting(1000)
	for i := range 1000 {
		w, _ := get(t, h, "ml-team", forbidden)
		if w.Code != http.StatusForbidden || w.Header()["X-RateLimit-Limit"][0] != "1000" || w.Header()["X-RateLimit-Remaining"] == nil || w.Header()["X-RateLimit-Reset"] == nil {
			t.Fatalf("request %d: %d %v", i, w.Code, w.Header())
		}
	}
	refused := 0
	for range 100 { // a few more come in while the test runs
		w, status := get(t, h, "ml-team", forbidden)
		if w.Code == http.StatusForbidden {
			continue
		}
		refused++
		header := w.Header()
		if w.Code != 429 || status.Kind != "Status" || status.Code != 429 || status.Reason != "TooManyRequests" || status.Message != "Rate limit exceeded. Tenant 'ml-team' limited to 1000 req/min." ||
			header["X-RateLimit-Limit"][0] != "1000" || header["X-RateLimit-Remaining"][0] != "0" || len(header["X-RateLimit-Reset"][0]) != len("1705312500") || header.Get("Retry-After") != "1" {
			t.Fatalf("%d %v\n%+v", w.Code, header, status)
		}
	}
	if refused == 0 {
		t.Error("1,100 requests were let in at once")
	}
	if w, _ := get(t, h, "speech", forbidden); w.Code != http.StatusForbidden {
		t.Errorf("another tenant gets %d", w.Code)
	}
	if w, _ := get(t, h, "admin", "/api/v1/nothing"); w.Code != http.StatusNotFound {
		t.Errorf("the admin gets %d", w.Code)
	}
}

// A coordinator that passes a request on has counted it. Nobody else can say so: a
// forged hop, one of another request and one of another caller are counted.
func TestOnlyCoordinatorsSayThatARequestWasCounted(t *testing.T) {
	by := func(key string) *service.Forward { return service.NewForward("c-2", nil, 0, nil).ProveBy(key) }
	hop := func(id, authorization string) service.Hop {
		return service.Hop{RequestID: id, Authorization: authorization}
	}
	proof := by("admin's").HopProof(hop("r-1", "Bearer ml-team"))
	for name, c := range map[string]struct {
		by, id, proof string
		counted       bool
	}{
		"no hop":                      {"", "r-1", "", true},
		"a hop without a proof":       {"c-2", "r-1", "", true},
		"a hop with its proof":        {"c-2", "r-1", proof, false},
		"the proof of another":        {"c-3", "r-1", proof, true},
		"a proof of another request":  {"c-2", "r-2", proof, true},
		"a proof of another caller":   {"c-2", "r-1", by("admin's").HopProof(hop("r-1", "Bearer speech")), true},
		"a proof by another key":      {"c-2", "r-1", by("guessed").HopProof(hop("r-1", "Bearer ml-team")), true},
		"a proof that is no digest":   {"c-2", "r-1", strings.Repeat("z", 64), true},
		"a proof that is cut short":   {"c-2", "r-1", proof[:10], true},
		"the empty proof of no admin": {"c-2", "r-1", by("").HopProof(hop("r-1", "Bearer ml-team")), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(Config{Service: struct{ service.Service }{}, Authenticator: newCrowd(), Gate: gate.New(&gate.Rates{Requests: 1}), Forward: by("admin's")})
			for range 3 {
				_, _ = get(t, h, "ml-team", forbidden, hopHeader, c.by, hopProofHeader, c.proof, requestIDHeader, c.id)
			}
			w, _ := get(t, h, "ml-team", forbidden, hopHeader, c.by, hopProofHeader, c.proof, requestIDHeader, c.id)
			if counted := w.Code == 429; counted != c.counted {
				t.Errorf("the fourth request gets %d, want it to be counted: %t", w.Code, c.counted)
			}
		})
	}
}

// Requests without a good token are counted by their address, and keep no tenant out.
func TestRequestsWithoutATokenAreCountedByAddress(t *testing.T) {
	h := counting(1_000_000)
	var w *httptest.ResponseRecorder
	var status *api.Status
	for range 7_000 {
		if w, status = get(t, h, "guess", forbidden); w.Code == 429 {
			break
		}
		if w.Code != 401 {
			t.Fatalf("a guess gets %d", w.Code)
		}
	}
	if want := "Rate limit exceeded. Address '192.0.2.1' without a valid token limited to 6000 req/min."; w.Code != 429 || status.Message != want || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %q, want %q", w.Code, status.Message, want)
	}
	if w, _ := get(t, h, "ml-team", forbidden); w.Code != http.StatusForbidden {
		t.Errorf("a tenant at the same address gets %d", w.Code)
	}
}

// sent sends a body as a tenant.
func sent(h http.Handler, kind, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer ml-team")
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The bytes of bodies are charged before anything reads them, YAML at a multiple and up to a
// quarter of the size of JSON. A request by way of another coordinator is not charged.
func TestBodiesAreChargedBeforeTheyAreRead(t *testing.T) {
	const path = "/api/v1/namespaces/ml-team/jobs"
	until429 := func(h http.Handler, kind, body string, header ...string) (n int, w *httptest.ResponseRecorder) {
		for n = 0; n < 50; n++ {
			if w = sent(h, kind, path, body, header...); w.Code == 429 {
				break
			}
			if w.Code != 400 {
				t.Fatalf("a body that is no document gets %d: %s", w.Code, w.Body)
			}
		}
		return n, w
	}
	yaml := "a: " + strings.Repeat("x", 255<<10)
	n, w := until429(counting(gate.DefaultRequests), typeYAML, yaml)
	if n < 5 || n > 8 || !strings.Contains(w.Body.String(), "has used up its share of work") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d documents of YAML are let in, then %s", n, w.Body)
	}
	begun := time.Now()
	if n, _ := until429(counting(gate.DefaultRequests), typeJSON, `{"a": "`+strings.Repeat("x", 1000<<10)+`"}`); n < 10 || n > 16+2*int(time.Since(begun)/time.Second) { // the share grows meanwhile
		t.Errorf("%d documents of JSON are let in within %s", n, time.Since(begun))
	}
	if w := sent(counting(gate.DefaultRequests), typeYAML, path, yaml+strings.Repeat("x", 2<<10)); w.Code != 413 || !strings.Contains(w.Body.String(), "send JSON") {
		t.Errorf("YAML beyond its bound gets %d: %s", w.Code, w.Body)
	}
	if w := sent(counting(gate.DefaultRequests), typeYAML, path, "a: &a ["+strings.Repeat("1,", 9999)+"1]\nb: [*a,*a,*a,*a,*a,*a,*a,*a]"); w.Code != 413 || !strings.Contains(w.Body.String(), "aliases") {
		t.Errorf("aliases beyond the bound get %d: %s", w.Code, w.Body)
	}
	by := service.NewForward("c-2", nil, 0, nil).ProveBy("admin's")
	h := NewHandler(Config{Service: struct{ service.Service }{}, Authenticator: newCrowd(), Gate: gate.New(&gate.Rates{Requests: gate.DefaultRequests}), Forward: by})
	proof := by.HopProof(service.Hop{RequestID: "r-1", Authorization: "Bearer ml-team"})
	if n, _ := until429(h, typeJSON, `{"a": "`+strings.Repeat("x", 1000<<10)+`"}`, hopHeader, "c-2", hopProofHeader, proof, requestIDHeader, "r-1"); n != 50 {
		t.Errorf("after %d requests one that another coordinator has charged is refused", n)
	}
}
