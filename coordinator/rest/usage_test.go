package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// byName lets in every bearer as the tenant of the token, root as the admin.
type byName struct{}

func (byName) Authenticate(_ context.Context, token string) (service.Principal, error) {
	return service.Principal{Name: token, Tenant: resource.TenantID(token), Admin: token == "root"}, nil
}

// askAs sends a request as a caller.
func askAs(t *testing.T, h http.Handler, caller, method, example string, answer any) int {
	t.Helper()
	w := sendExample(h, method, example, caller)
	if answer != nil && w.Code < 300 {
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code
}

// crowded is a cluster of one GPU node in which units of two tenants wait.
func crowded(t *testing.T) http.Handler {
	t.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := checkedHandler(t, rest.Config{
		Service:       resttest.New(func() time.Time { return now }, resttest.Node{Name: "gpu-1", CPUs: 16, Memory: 64 << 30, GPUs: 4}),
		Authenticator: byName{},
	})
	for i, namespace := range []string{"ml", "ml", "speech"} {
		now = now.Add(time.Minute)
		job := `{"metadata": {"name": "` + string(rune('a'+i)) + `"}, "spec": {"queue": "gpu-training", "template": {"spec": {"resources": {"requests": {"nvidia.com/gpu": "5"}}}}}}`
		if code := askAs(t, h, "root", "POST", "/api/v1/namespaces/"+namespace+"/jobs "+job, nil); code != http.StatusCreated {
			t.Fatalf("job %d is answered with %d", i, code)
		}
	}
	return h
}

func TestATenantSeesItsOwnPartOfAQueue(t *testing.T) {
	h := crowded(t)
	const since = "2026-03-01T12:00:00Z"
	queue := func(depth int, oldest string) []api.QueueNumbers {
		return []api.QueueNumbers{{Name: "gpu-training", Depth: depth, OldestItem: oldest, AvgWaitTime: "0s", P99WaitTime: "0s"}}
	}
	for caller, want := range map[string][]api.QueueNumbers{
		"root": queue(3, "2026-03-01T12:01:00Z"), "ml": queue(2, "2026-03-01T12:01:00Z"), "speech": queue(1, "2026-03-01T12:03:00Z"), "nobody": {},
	} {
		var got api.QueueUsage
		if code := askAs(t, h, caller, "GET", "/api/v1/metrics/queues", &got); code != http.StatusOK || got.Since != since {
			t.Errorf("%s is answered with %d, since %s", caller, code, got.Since)
		}
		if diff := cmp.Diff(want, got.Queues); diff != "" {
			t.Errorf("%s sees (-want +got)\n%s", caller, diff)
		}
	}
}

func TestATenantSeesItsOwnUsageAlone(t *testing.T) {
	h := crowded(t)
	for name, c := range map[string]struct {
		caller, tenant string
		want           int
	}{
		"an admin sees every tenant":              {"root", "ml", http.StatusOK},
		"a tenant sees itself":                    {"ml", "ml", http.StatusOK},
		"a tenant does not see another":           {"ml", "speech", http.StatusNotFound},
		"a tenant does not see one without usage": {"ml", "nobody", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if got := askAs(t, h, c.caller, "GET", "/api/v1/metrics/tenants/"+c.tenant+"/usage", nil); got != c.want {
				t.Errorf("answered with %d, want %d", got, c.want)
			}
		})
	}
	if w := sendExample(h, "GET", "/api/v1/metrics/cluster/utilization", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", w.Code)
	}
}

// Peak and average are of the time since the term began, as the answer says.
func TestATenantsUsageOverTime(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := checkedHandler(t, rest.Config{
		Service:       resttest.New(func() time.Time { return now }, resttest.Node{Name: "gpu-1", CPUs: 16, Memory: 64 << 30, GPUs: 4}),
		Authenticator: byName{},
	})
	ask := func(period string) api.TenantResource {
		t.Helper()
		var got api.TenantUsage
		if code := askAs(t, h, "ml", "GET", "/api/v1/metrics/tenants/ml/usage?period="+period, &got); code != http.StatusOK {
			t.Fatalf("answered with %d", code)
		}
		return got.Resources[resource.GPU]
	}
	const work = "/api/v1/namespaces/ml/allocations"
	now = now.Add(time.Hour) // an hour of nothing
	if code := askAs(t, h, "ml", "POST", work+` {"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"nvidia.com/gpu": "4"}}}}`, nil); code != http.StatusCreated {
		t.Fatalf("answered with %d", code)
	}
	now = now.Add(time.Hour) // an hour of 4 GPUs
	if diff := cmp.Diff(api.TenantResource{CurrentUsage: "4", PeakUsage: "4", AvgUsage: "2"}, ask("24h")); diff != "" {
		t.Errorf("after an hour of 4 GPUs (-want +got)\n%s", diff)
	}
	if code := askAs(t, h, "ml", "DELETE", work+"/a", nil); code != http.StatusOK {
		t.Fatalf("answered with %d", code)
	}
	now = now.Add(2 * time.Hour)
	if diff := cmp.Diff(api.TenantResource{CurrentUsage: "0", PeakUsage: "4", AvgUsage: "1"}, ask("24h")); diff != "" {
		t.Errorf("two hours later (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(api.TenantResource{CurrentUsage: "0", PeakUsage: "0", AvgUsage: "0"}, ask("1h")); diff != "" {
		t.Errorf("in the last hour (-want +got)\n%s", diff)
	}
}

func TestPeriodsAreBounded(t *testing.T) {
	h := crowded(t)
	for period, want := range map[string]int{"1m": 200, "24h": 200, "1440m": 200, "24h1s": 200, "30d": 200, "8784h1s": 422, "367d": 422, "-1d": 422, "59s": 422, "-1h": 422, "day": 400, "": 200} {
		if got := askAs(t, h, "root", "GET", "/api/v1/metrics/tenants/ml/usage?period="+period, nil); got != want {
			t.Errorf("a period of %q is answered with %d, want %d", period, got, want)
		}
	}
}
