package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

func TestTheTestClusterKeepsTheContract(t *testing.T) {
	resttest.RunQuotas(t, func(*testing.T) service.Quotas { return resttest.New(time.Now) })
}

// racing is a service whose quotas are changed by somebody else each time
// before an update, races times.
type racing struct {
	*resttest.Cluster
	races int
}

func (r *racing) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	if r.races > 0 {
		r.races--
		other, err := r.GetResourceQuota(ctx, q.Metadata.Namespace, q.Metadata.Name)
		if err != nil {
			return nil, err
		}
		other.Spec.Hard["memory"] = other.Spec.Hard["memory"] + "0"
		if _, err := r.Cluster.UpdateResourceQuota(ctx, other); err != nil {
			return nil, err
		}
	}
	return r.Cluster.UpdateResourceQuota(ctx, q)
}

func TestAPatchIsAppliedToWhatOthersLeft(t *testing.T) {
	for name, c := range map[string]struct {
		races       int
		conditional bool
		want        int
		memory      string
	}{
		"nobody else":                       {0, false, 200, "1"},
		"two others":                        {2, false, 200, "100"},
		"others without end":                {9, false, 409, "100000"},
		"one other and a precondition":      {1, true, 409, "10"},
		"a precondition that holds to win":  {0, true, 200, "1"},
		"as many others as there are tries": {4, false, 200, "10000"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &racing{Cluster: resttest.New(time.Now), races: c.races}
			made, err := cluster.CreateResourceQuota(t.Context(), &api.ResourceQuota{
				Metadata: api.ObjectMeta{Name: "q", Namespace: "a"}, Spec: api.ResourceQuotaSpec{Hard: map[resource.Name]string{"cpu": "1", "memory": "1"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			patch := `{"spec":{"hard":{"cpu":"2"}}}`
			if c.conditional {
				patch = `{"metadata":{"resourceVersion":"` + made.Metadata.ResourceVersion + `"},"spec":{"hard":{"cpu":"2"}}}`
			}
			r := httptest.NewRequest("PATCH", "/api/v1/namespaces/a/resourcequotas/q", strings.NewReader(patch))
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/merge-patch+json")
			recorder := httptest.NewRecorder()
			checkedHandler(t, rest.Config{Service: cluster, Authenticator: service.StaticToken(token)}).ServeHTTP(recorder, r)
			got, err := cluster.GetResourceQuota(t.Context(), "a", "q")
			if err != nil {
				t.Fatal(err)
			}
			cpu := map[bool]string{true: "2", false: "1"}[c.want == 200]
			if recorder.Code != c.want || got.Spec.Hard["memory"] != c.memory || got.Spec.Hard["cpu"] != cpu {
				t.Errorf("got %d %s, left %v; want %d and memory %s", recorder.Code, recorder.Body, got.Spec.Hard, c.want, c.memory)
			}
		})
	}
}

func TestQuotaIsForAdminsToChange(t *testing.T) {
	cluster := resttest.New(time.Now)
	for _, namespace := range []string{"ml-team", "other"} {
		if _, err := cluster.PutQuotaBinding(t.Context(), &api.QuotaBinding{Metadata: api.ObjectMeta{Name: namespace}}, true); err != nil {
			t.Fatal(err)
		}
	}
	h := checkedHandler(t, rest.Config{Service: cluster, Authenticator: tenants{}})
	for request, want := range map[string]int{
		"GET /api/v1/namespaces/ml-team/resourcequotas":          200,
		"GET /api/v1/namespaces/other/resourcequotas":            404,
		"GET /api/v1/resourcequotas":                             403,
		"POST /api/v1/namespaces/ml-team/resourcequotas":         403,
		"PATCH /api/v1/namespaces/ml-team/resourcequotas/q":      403,
		"PUT /api/v1/namespaces/ml-team/resourcequotas/q":        403,
		"DELETE /api/v1/namespaces/ml-team/resourcequotas/q":     403,
		"GET /api/v1/quotatrees":                                 200,
		"PUT /api/v1/quotatrees/T":                               403,
		"POST /api/v1/quotatrees/T/reclaim":                      403,
		"POST /api/v1/quotatrees/T/reclaim?dryRun=true":          403,
		"GET /api/v1/quotaforests":                               200,
		"POST /api/v1/quotaforests":                              403,
		"GET /api/v1/quotabindings":                              403,
		"GET /api/v1/quotabindings/ml-team":                      200,
		"GET /api/v1/quotabindings/other":                        404,
		"PATCH /api/v1/quotabindings/ml-team":                    403,
		"GET /api/v1/namespaces/other/allocations/x/quota":       404,
		"GET /api/v1/namespaces/ml-team/jobs/x/quota":            404,
		"GET /api/v1/namespaces/ml-team/resourcequotas/q/status": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Authorization", "Bearer someone")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		if recorder.Code != want {
			t.Errorf("%s: got %d %s, want %d", request, recorder.Code, recorder.Body, want)
		}
	}
}

func TestADocumentInYAMLIsTaken(t *testing.T) {
	r := httptest.NewRequest("PUT", "/api/v1/quotatrees/Lab", strings.NewReader("kind: QuotaTree\nmetadata: {name: Lab}\nspec:\n  nodes:\n    all: {quota: {cpu: 64}}\n"))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/yaml")
	recorder := httptest.NewRecorder()
	newHandler(t).ServeHTTP(recorder, r)
	var tree api.QuotaTree
	if err := json.Unmarshal(recorder.Body.Bytes(), &tree); err != nil || recorder.Code != http.StatusCreated || tree.Status.Root != "all" {
		t.Errorf("got %d %s, %v", recorder.Code, recorder.Body, err)
	}
}

func TestAnAmbiguousScalarInABodyIsRefused(t *testing.T) {
	for value, want := range map[string]string{
		"0x10": "spec.nodes.all.quota.cpu (line 4): the value 0x10 is the number 16", ".inf": "the value .inf is no number", "010": "the value 010 is the number 8", "1_000": "the number 1000",
	} {
		r := httptest.NewRequest("PUT", "/api/v1/quotatrees/Lab", strings.NewReader("kind: QuotaTree\nmetadata: {name: Lab}\nspec:\n  nodes: {all: {quota: {cpu: "+value+"}}}\n"))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/yaml")
		recorder := httptest.NewRecorder()
		h := newHandler(t)
		h.ServeHTTP(recorder, r)
		if recorder.Code != http.StatusUnprocessableEntity || !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("%s: got %d %s, want 422 with %q", value, recorder.Code, recorder.Body, want)
		}
		if got := sent(h, "GET", "/api/v1/quotatrees/Lab", ""); got.Code != http.StatusNotFound {
			t.Errorf("%s: the tree exists: %d", value, got.Code)
		}
	}
}
