package agent_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/cmd/reference/series"
)

// A real agent in the rings shows the series that docs/reference/metrics.md lists, by
// promtool's rules.
func TestTheReferenceListsEverySeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newRig(t)
	r.tune = func(c *agent.Config, d *agent.Deps) {
		c.MetricsListen, d.Metrics = loopback, registry
		c.Gossip = &agent.GossipConfig{SerfBind: loopback, CapacityBind: loopback}
	}
	r.start()
	r.grant(r.lead(1), "a", 3)
	eventually(t, "it has joined the rings", func() bool { return r.agent.Rings() != nil })
	var faults []string
	eventually(t, "the rings' series are registered", func() bool {
		var err error
		if faults, err = series.Compare(series.Agent, registry); err != nil {
			t.Fatal(err)
		}
		return len(faults) == 0
	})
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
