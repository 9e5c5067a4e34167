package daemon_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/musterd/muster/cmd/reference/series"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/coordinator/history/redis"
	"github.com/musterd/muster/rpcauth"
)

// A real coordinator with TLS shows the series that docs/reference/metrics.md lists,
// by promtool's rules.
func TestTheReferenceListsEverySeries(t *testing.T) {
	token, err := rpcauth.NewToken("0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.New(t.Context(), daemon.Config{
		ID: "c1", Cluster: "test", DataDir: t.TempDir(), RESTListen: "127.0.0.1:0", GRPCListen: "127.0.0.1:0", SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0",
		TLS: &daemon.TLSConfig{Dir: filepath.Join(t.TempDir(), "tls")}, AdminToken: token, LeaseTTL: 5 * time.Second, History: daemon.History{DSN: "sqlite:" + filepath.Join(t.TempDir(), "history.db"), Redis: redis.Options{Address: "unix:///nowhere"}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	own, cluster := d.Registries()
	for list, registry := range map[*[]series.Series]*prometheus.Registry{&series.Coordinator: own, &series.Cluster: cluster} {
		faults, err := series.Compare(*list, registry)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			t.Error(f)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
