package daemon

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/gossip"
)

// A ring member that tags itself with another's id is not followed, and counted.
func TestAMemberUnderAnotherNameIsIgnored(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	registry := prometheus.NewRegistry()
	c, err := coordinator.New(coordinator.Config{ID: "c", Cluster: "c", Logger: slog.New(slog.DiscardHandler)}, s.Connect(mem.Options{}), registry)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{coordinator: c}
	for _, name := range []string{"evil", "n1", "n2"} {
		d.member(gossip.Member{Name: name, Tags: gossip.Tags{Role: gossip.RoleAgent, ID: "n1", Addr: "10.0.0.1:1"}, Status: gossip.Alive})
	}
	d.member(gossip.Member{Name: "evil", Tags: gossip.Tags{Role: gossip.RoleCoordinator, ID: "c2"}})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "muster_coordinator_gossip_ignored_total" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if got["other_name"] != 2 || got["unregistered"] != 1 {
		t.Errorf("ignored %v, want 2 of another name and 1 that has not registered", got)
	}
}
