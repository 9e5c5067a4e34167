package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/resource"
)

func TestTheUsagePageStandsAlone(t *testing.T) {
	half := 0.5
	u := &api.TenantUsage{
		Tenant: `<script>alert("ml")</script>`, Period: "30d", Since: "2026-03-01T12:00:00Z",
		Resources: map[resource.Name]api.TenantResource{
			resource.GPU:    {Quota: "100", CurrentUsage: "50", PeakUsage: "95", AvgUsage: "68500m", UtilizationOfQuota: &half},
			resource.Memory: {CurrentUsage: "32Gi"},
		},
		Cost: &api.TenantCost{Total: "$12,450.00", Breakdown: map[string]string{"gpu": "$12,000.00", "memory": "$450.00"}},
	}
	path := filepath.Join(t.TempDir(), "usage.html")
	if err := writeUsagePage(path, u); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, want := range []string{"nvidia.com/gpu", "$12,450.00", `class="peak"`, `width="440"`, "68500m", "&lt;script&gt;", "default-src 'none'"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, foreign := range []string{"<script", "http://", "https://", "src=", "@import", "url("} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
}

// TestTheUsageOfAllTenants: a line for each tenant and resource, and the costs of those
// that have one.
func TestTheUsageOfAllTenants(t *testing.T) {
	half := 0.5
	var out strings.Builder
	a := &app{Program: Program{Stdout: &out}}
	a.drawUsageOfAll(&[]api.TenantUsage{
		{Tenant: "ml", Resources: map[resource.Name]api.TenantResource{resource.GPU: {Quota: "8", CurrentUsage: "4", PeakUsage: "6", AvgUsage: "3500m", UtilizationOfQuota: &half}, resource.CPU: {CurrentUsage: "2"}}, Cost: &api.TenantCost{Total: "$12.50"}},
		{Tenant: "speech", Resources: map[resource.Name]api.TenantResource{resource.CPU: {CurrentUsage: "1"}}},
	})
	want := strings.Join([]string{
		"TENANT   RESOURCE         QUOTA    CURRENT   PEAK     AVERAGE   OF-QUOTA",
		"ml       cpu              <none>   2         <none>   <none>    <none>",
		"ml       nvidia.com/gpu   8        4         6        3500m     50%",
		"speech   cpu              <none>   1         <none>   <none>    <none>",
		"",
		"TENANT   COST",
		"ml       $12.50",
	}, "\n") + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestTheUsageOfAnOperator: without --tenant the tenants with an object, and the owner of
// the namespace, with or without an object of its own.
func TestTheUsageOfAnOperator(t *testing.T) {
	documents := map[string]string{
		"/api/v1/whoami":                        `{"tenant": ""}`,
		"/api/v1/tenants":                       `{"items": [{"metadata": {"name": "vision"}}]}`,
		"/api/v1/namespaces/owned":              `{"metadata": {"name": "owned"}, "spec": {"tenant": "vision"}}`,
		"/api/v1/metrics/tenants/vision/usage":  `{"tenant": "vision", "resources": {"cpu": {"currentUsage": "3"}}}`,
		"/api/v1/metrics/tenants/default/usage": `{"tenant": "default", "resources": {"cpu": {"currentUsage": "1"}}}`,
		"/api/v1/metrics/tenants/empty/usage":   `{"tenant": "empty", "resources": {}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, found := documents[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			document = `{"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}`
		}
		_, _ = w.Write([]byte(document))
	}))
	defer server.Close()
	s := newShell(t, nil)
	s.save(t, clicontext.Context{Addr: server.URL, Token: token})
	for name, c := range map[string]struct {
		args   []string
		want   []string // tenants in the table, in order
		stderr string
	}{
		"a namespace without an object": {[]string{"usage"}, []string{"default", "vision"}, ""},
		"a namespace that is owned":     {[]string{"usage", "-n", "owned"}, []string{"vision"}, ""},
		"a tenant that used nothing":    {[]string{"usage", "--tenant", "empty"}, nil, "has used nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			code, got, stderr := s.run(t.Context(), "", c.args...)
			var tenants []string
			for _, line := range strings.Split(got, "\n") {
				if f := strings.Fields(line); len(f) > 1 && f[1] == "cpu" {
					tenants = append(tenants, f[0])
				}
			}
			if code != ExitDone || !slices.Equal(tenants, c.want) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit %d, tenants %v, want %v\n%s%s", code, tenants, c.want, got, stderr)
			}
		})
	}
}
