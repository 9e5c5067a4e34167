package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
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
		"TENANT   RESOURCE         QUOTA   CURRENT   PEAK   AVERAGE   OF-QUOTA",
		"ml       cpu              -       2         -      -         -",
		"ml       nvidia.com/gpu   8       4         6      3500m     50%",
		"speech   cpu              -       1         -      -         -",
		"",
		"TENANT   COST",
		"ml       $12.50",
	}, "\n") + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
