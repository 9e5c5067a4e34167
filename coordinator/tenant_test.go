package coordinator_test

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

func TestTheConfigurationSaysWhoOwnsANamespace(t *testing.T) {
	s := mem.Open(mem.Options{})
	t.Cleanup(func() { _ = s.Close() })
	c, err := coordinator.New(coordinator.Config{
		ID: "c1", Cluster: "c", Logger: slog.New(slog.DiscardHandler),
		Namespaces: map[string]lead.Namespace{"vision-dev": {Tenant: "vision"}, "speech": {}},
	}, s.Connect(mem.Options{}), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]resource.TenantID{"vision-dev": "vision", "speech": "speech", "unlisted": "unlisted"} {
		if got := c.TenantOf(namespace); got != want {
			t.Errorf("%s is %s's, want %s's", namespace, got, want)
		}
	}
}
