package rights

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/rest/restdoc"
	"github.com/musterd/muster/coordinator/service"
)

// routes are the routes that need a right, by pattern.
func routes() map[string]restdoc.Route {
	all := map[string]restdoc.Route{}
	for _, r := range restdoc.Routes() {
		if r.Kind != "" {
			all[r.Pattern()] = r
		}
	}
	return all
}

// namesTenant reports whether a route is about an object of a tenant.
func namesTenant(r restdoc.Route) bool {
	return strings.Contains(r.Path, "{namespace}") || strings.Contains(r.Path, "{tenant}") || r.Kind == service.KindTenants && strings.Contains(r.Path, "{name}") ||
		slices.Contains(ofTenants, r.Kind) && (strings.Contains(r.Path, "{name}") || r.Verb == service.VerbCreate)
}

// placesOf are the places that a route is about.
func placesOf(r restdoc.Route) []place {
	namespaced := slices.ContainsFunc(service.Rights(), func(right service.Right) bool { return right.Kind == r.Kind && right.Namespaced })
	switch {
	case namesTenant(r):
		return []place{inOwn, inOther}
	case namespaced:
		return []place{inAll}
	}
	return []place{inNone}
}

// nameIn is the name of an object of a kind in a tenant.
func (h *house) nameIn(kind service.Kind, tenant string) string {
	switch kind {
	case service.KindAccessTokens:
		return h.ids[tenant]
	case service.KindRoleBindings:
		return tenant + ".readers"
	case service.KindTenants, service.KindNamespaces, service.KindQuotaBindings:
		return tenant
	}
	return "thing"
}

// tenantAt is the tenant of the objects at a place.
func tenantAt(p place) string {
	if p == inOther {
		return other
	}
	return own
}

// request is a request of a route at a place.
func (h *house) request(r restdoc.Route, p place) *http.Request {
	tenant := tenantAt(p)
	path := strings.NewReplacer("{namespace}", tenant, "{tenant}", tenant, "{tree}", "tree", "{domain}", "example.com", "{name}", h.nameIn(r.Kind, tenant)).Replace(r.Path)
	body, kind := "{}", "application/json"
	switch {
	case r.Method == http.MethodGet:
		body = ""
	case r.Method == http.MethodPatch:
		kind = "application/merge-patch+json"
	case r.Kind == service.KindAccessTokens && r.Verb == service.VerbCreate:
		body = `{"spec":{"user":"bob","role":"viewer","tenant":"` + tenant + `"}}`
	case r.Kind == service.KindRoleBindings:
		body = `{"kind":"RoleBinding","metadata":{"name":"` + tenant + `.readers"},"spec":{"role":"viewer","tenant":"` + tenant + `","subjects":[{"kind":"User","name":"bob"}]}}`
	case r.Kind == service.KindNodes && r.Verb == service.VerbCreate:
		body = `{"metadata":{"name":"gpu-9"}}`
	}
	if r.Method == http.MethodDelete {
		body = ""
	}
	request := httptest.NewRequest(r.Method, path, strings.NewReader(body))
	if body != "" {
		request.Header.Set("Content-Type", kind)
	}
	return request
}

// askREST asks every route as every role. A list is asked as a watch too.
func askREST(t *testing.T, h *house, see func(door, asked) answers) {
	ask := func(r restdoc.Route, p place, verb service.Verb, query string) {
		row := see(overREST, asked{r.Kind, verb, p})
		for i, want := range row {
			request := h.request(r, p)
			request.URL.RawQuery = query
			request.Header.Set("Authorization", "Bearer "+h.tokens[who[i]])
			answer := httptest.NewRecorder()
			h.handler.ServeHTTP(answer, request)
			if got := answerOf(answer.Code); got != want {
				t.Errorf("%s %s as %s: %d %s, want %s", r.Method, request.URL, who[i], answer.Code, strings.TrimSpace(answer.Body.String()), want)
			}
			h.audits.check(t, fmt.Sprintf("%s %s as %s", r.Method, request.URL, who[i]), want)
		}
	}
	for _, r := range routes() {
		for _, p := range placesOf(r) {
			ask(r, p, r.Verb, "")
			if r.Verb == service.VerbList && service.Needs(service.VerbWatch, r.Kind) != service.Nobody {
				ask(r, p, service.VerbWatch, "watch=true")
			}
		}
	}
	// The cluster's metrics are beside the API, for Prometheus.
	metrics := rest.AdminOnly(h.door, h.audits, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for i, want := range see(overREST, asked{service.KindMetrics, service.VerbGet, inNone}) {
		request, answer := httptest.NewRequest(http.MethodGet, "/metrics/cluster", nil), httptest.NewRecorder()
		request.Header.Set("Authorization", "Bearer "+h.tokens[who[i]])
		if metrics.ServeHTTP(answer, request); answerOf(answer.Code) != want {
			t.Errorf("the cluster's metrics as %s: %d, want %s", who[i], answer.Code, want)
		}
		h.audits.check(t, "the cluster's metrics as "+who[i], want)
	}
}
