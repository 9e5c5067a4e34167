package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
