package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sent sends a document as an admin.
func sent(h http.Handler, method, target, document string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(document))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}

func TestNamesOfResourcesAreJudged(t *testing.T) {
	const (
		quotas = "/api/v1/namespaces/a/resourcequotas"
		trees  = "/api/v1/quotatrees"
		keep   = "?allowUnknownResources=true"
		typo   = `{"metadata":{"name":"q"},"spec":{"hard":{"nvidia.com/gpus":"1"}}}`
		kept   = `299 muster "spec.hard[\"nvidia.com/gpus\"]: no node hands it out, so the amount in use is always 0; is \"nvidia.com/gpu\" meant?"`
		tree   = `{"metadata":{"name":"T"},"spec":{"resourceNames":[%q],"nodes":{"all":{"quota":{"cpu":"1"}}}}}`
	)
	type step struct {
		method, target, document string
		code                     int
		says                     string // in the body
		warned                   []string
	}
	for name, steps := range map[string][]step{
		"a typo in a quota is refused": {
			{"POST", quotas, typo, 422, `is \"nvidia.com/gpu\" meant?`, nil},
			{"GET", quotas + "/q", "", 404, "", nil},
		},
		"the client may keep a name, and further changes keep it too": {
			{"POST", quotas + keep, typo, 201, "", []string{kept}},
			{"PATCH", quotas + "/q", `{"spec":{"hard":{"cpu":"2"}}}`, 200, "", []string{kept}},
			{"PATCH", quotas + "/q", `{"spec":{"hard":{"cpus":"2"}}}`, 422, `is \"cpu\" meant?`, nil},
			{"PUT", quotas + "/q", typo, 200, "", []string{kept}},
		},
		"the specification's names are kept with a warning": {
			{"PUT", quotas + "/q", `{"metadata":{"name":"q"},"spec":{"hard":{"services":"1"}}}`, 201, "", []string{`299 muster "spec.hard.services: no node hands it out, so the amount in use is always 0"`}},
			{"PUT", trees + "/T", fmt.Sprintf(tree, "disk"), 201, "", []string{`299 muster "spec.resourceNames[0]: no node hands it out, so the amount in use is always 0"`}},
		},
		"a typo in a tree is refused": {
			{"POST", trees, fmt.Sprintf(tree, "cpus"), 422, `spec.resourceNames[0]: no resource is named \"cpus\"; is \"cpu\" meant?`, nil},
			{"POST", trees + keep, fmt.Sprintf(tree, "cpus"), 201, "", []string{`299 muster "spec.resourceNames[0]: no node hands it out, so the amount in use is always 0; is \"cpu\" meant?"`}},
		},
		"a typo of a consumer is refused, and what a tree does not count is not": {
			{"POST", trees, fmt.Sprintf(tree, "cpu"), 201, "", nil},
			{"POST", "/api/v1/quota/dryruns", `{"kind":"Consumer","spec":{"id":"c","trees":[{"treeName":"T","groupID":"all","request":{"nvidia.com/gpus":1}}]}}`, 422, `is \"nvidia.com/gpu\" meant?`, nil},
			{"POST", "/api/v1/quota/dryruns", `{"kind":"Consumer","spec":{"id":"c","trees":[{"treeName":"T","groupID":"all","request":{"cpu":1,"disk":1}}]}}`, 200, "", nil},
		},
		"the parameter is true or false, and of changes alone": {
			{"POST", quotas + "?allowUnknownResources=maybe", typo, 400, "want true or false", nil},
			{"GET", quotas + "/q" + keep, "", 400, "unknown query parameter", nil},
			{"PUT", "/api/v1/quotaforests/F" + keep, `{}`, 400, "unknown query parameter", nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t)
			for _, s := range steps {
				got := sent(h, s.method, s.target, s.document)
				if got.Code != s.code || !strings.Contains(got.Body.String(), s.says) {
					t.Fatalf("%s %s: got %d %s, want %d with %q", s.method, s.target, got.Code, got.Body, s.code, s.says)
				}
				if diff := cmp.Diff(s.warned, got.Header().Values("Warning")); diff != "" {
					t.Errorf("%s %s: warnings (-want +got):\n%s", s.method, s.target, diff)
				}
			}
		})
	}
}

// Work that can never run waits with a warning, which a dry run has as its outlook, unless a rule rejects it: the
// namespace's, else its tenant's.
func TestWorkThatCanNeverRunIsWarnedOfOrRejected(t *testing.T) {
	const (
		nine   = `{"kind":"Allocation","metadata":{"name":"nine"},"spec":{"resources":{"requests":{"nvidia.com/gpu":9}}}}`
		pair   = `{"kind":"Job","metadata":{"name":"pair"},"spec":{"parallelism":2,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":9}}}}}}`
		never  = "a member wants 9 GPUs, and none of the 3 nodes has more than 4 GPUs"
		warned = `299 muster "Never on the nodes registered now, absent ones included: ` + never + `. It waits until a node or a quota changes that."`
	)
	put := func(kind, name, spec string) [3]string {
		return [3]string{"PUT", "/api/v1/" + kind + "/" + name, fmt.Sprintf(`{"metadata":{"name":%q},"spec":%s}`, name, spec)}
	}
	for name, c := range map[string]struct {
		rules   [][3]string
		rejects string // the words of the rule, "" where the work waits
	}{
		"no rule":                                      {nil, ""},
		"its tenant rejects":                           {[][3]string{put("tenants", "t", `{"unsatisfiable":"reject"}`), put("namespaces", "a", `{"tenant":"t"}`)}, "Tenant t rejects work that can never run (spec.unsatisfiable)"},
		"the tenant of its own name rejects":           {[][3]string{put("tenants", "a", `{"unsatisfiable":"reject"}`)}, "Tenant a rejects"},
		"its namespace rejects":                        {[][3]string{put("namespaces", "a", `{"unsatisfiable":"reject"}`)}, "Namespace a rejects work that can never run (spec.unsatisfiable)"},
		"its namespace lets wait in spite of a tenant": {[][3]string{put("tenants", "t", `{"unsatisfiable":"reject"}`), put("namespaces", "a", `{"tenant":"t","unsatisfiable":"wait"}`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t)
			for _, r := range c.rules {
				if got := sent(h, r[0], r[1], r[2]); got.Code != 201 {
					t.Fatalf("%v: %d %s", r, got.Code, got.Body)
				}
			}
			for _, door := range []struct{ path, document string }{{"allocations", nine}, {"jobs", pair}} {
				at := "/api/v1/namespaces/a/" + door.path
				for _, dry := range []string{"?dryRun=All", ""} {
					got := sent(h, "POST", at+dry, door.document)
					if c.rejects != "" {
						if got.Code != 422 || !strings.Contains(got.Body.String(), never) || !strings.Contains(got.Body.String(), c.rejects) {
							t.Errorf("%s%s: %d %s, want 422 with %q and %q", door.path, dry, got.Code, got.Body, never, c.rejects)
						}
						continue
					}
					if got.Code >= 300 {
						t.Fatalf("%s%s: %d %s", door.path, dry, got.Code, got.Body)
					}
					var want []string
					if dry == "" {
						want = []string{warned}
					} else if !strings.Contains(got.Body.String(), `"can":"Never"`) {
						t.Errorf("%s%s: the answer has no verdict: %s", door.path, dry, got.Body)
					}
					if diff := cmp.Diff(want, got.Header().Values("Warning")); diff != "" {
						t.Errorf("%s%s: warnings (-want +got):\n%s", door.path, dry, diff)
					}
					if shows := strings.Contains(got.Body.String(), `"type":"Unsatisfiable","status":"True","reason":"NodeTooSmall"`); dry == "" && !shows {
						t.Errorf("%s: no condition Unsatisfiable: %s", door.path, got.Body)
					}
				}
				if list := sent(h, "GET", at, "").Body.String(); strings.Contains(list, `"name":`) != (c.rejects == "") {
					t.Errorf("afterwards there is %s", list)
				}
			}
		})
	}
}
