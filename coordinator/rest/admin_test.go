package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

func TestOnlyAdminsSeeWhatIsForAdmins(t *testing.T) {
	h := rest.AdminOnly(people{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) }))
	for name, c := range map[string]struct {
		header string
		code   int
		says   string
	}{
		"an administrator":          {"Bearer boss", 200, "secret"},
		"a tenant":                  {"Bearer ann", 403, `want the role operator or admin; \"ann\" has editor of tenant ml`},
		"somebody with a bad token": {"Bearer x", 401, "the token is not valid here"},
		"somebody without a token":  {"", 401, "no token: send the header"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/metrics/cluster", nil)
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) || (c.code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("%d %v %s, want %d with %s", w.Code, w.Header(), w.Body, c.code, c.says)
			}
		})
	}
}
