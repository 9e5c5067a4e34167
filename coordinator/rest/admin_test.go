package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
)

// people knows an administrator and a tenant.
type people struct{}

func (people) Authenticate(_ context.Context, token string) (service.Principal, error) {
	switch token {
	case "boss":
		return service.Principal{Name: "boss", Admin: true}, nil
	case "ann":
		return service.Principal{Name: "ann", Tenant: "ml"}, nil
	}
	return service.Principal{}, errors.New("unknown")
}

// refused are the refusals that the audit has got.
type refused struct {
	service.NoAudits
	got []record.Audit
}

// Refused implements service.Audits.
func (r *refused) Refused(a record.Audit, _ *api.Status) { r.got = append(r.got, a) }

func TestOnlyAdminsSeeWhatIsForAdmins(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		code   int
		says   string
		noted  []record.Audit
	}{
		"an administrator": {"Bearer boss", 200, "secret", nil},
		"a tenant": {
			"Bearer ann", 403, `want the role operator or admin; \"ann\" has editor of tenant ml`,
			[]record.Audit{{Actor: record.Actor{Person: "ann", Tenant: "ml"}}},
		},
		"somebody with a bad token": {"Bearer x", 401, "the token is not valid here", []record.Audit{{}}},
		"somebody without a token":  {"", 401, "no token: send the header", []record.Audit{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			var audits refused
			h := rest.AdminOnly(people{}, &audits, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) }))
			r := httptest.NewRequest(http.MethodGet, "/metrics/cluster", nil)
			r.Header.Set("X-Request-Id", "mine")
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) || (c.code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("%d %v %s, want %d with %s", w.Code, w.Header(), w.Body, c.code, c.says)
			}
			for i := range c.noted {
				n := &c.noted[i]
				n.RequestID, n.Address, n.Verb, n.Kind = w.Header().Get("X-Request-Id"), r.RemoteAddr, "get", "metrics"
			}
			for i := range audits.got {
				audits.got[i].ID, audits.got[i].AtMillis = "", 0
			}
			if !slices.Equal(audits.got, c.noted) || w.Header().Get("X-Request-Id") != "mine" {
				t.Errorf("the audit has %+v of request %q, want %+v", audits.got, w.Header().Get("X-Request-Id"), c.noted)
			}
		})
	}
}
