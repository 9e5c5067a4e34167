package monitor_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/monitor"
	"github.com/musterd/muster/resource"
)

// The answer has the form of spec/api-design.txt, number by number.
func TestUtilizationHasTheFormOfTheSpecification(t *testing.T) {
	at := time.Date(2024, 1, 15, 10, 35, 0, 0, time.UTC)
	node := func(id resource.NodeID, busy int, c lead.NodeConditions) lead.NodeFigures {
		return lead.NodeFigures{
			ID: id, Capacity: resource.Vector{"cpu": 320_000, "memory": 1280 << 30, "nvidia.com/gpu": 8000}, Busy: busy, Conditions: c,
			Allocatable: resource.Vector{"cpu": 310_000, "memory": 1240 << 30, "nvidia.com/gpu": 8000}, Usage: resource.Vector{"cpu": 186_000, "memory": 868 << 30},
		}
	}
	got, err := json.Marshal(monitor.Utilization(&lead.Figures{
		At: at, Elected: at.Add(-time.Hour), PendingMembers: 142,
		Nodes: []lead.NodeFigures{
			node("a", 8, lead.NodeConditions{Ready: true}), node("b", 4, lead.NodeConditions{Cordoned: true}),
			node("c", 0, lead.NodeConditions{Cordoned: true, Disconnected: true}), node("d", 0, lead.NodeConditions{Quarantined: true}),
		},
		Allocated:  map[string]cluster.Amounts{"x": {CPU: 200_000, Memory: 512 << 30, GPU: 7500}, "y": {CPU: 48_000, Memory: 512 << 30, GPU: 8000}},
		Scheduling: lead.Scheduling{PerSecond: 486.7, Mean: 12 * time.Millisecond, P99: 85 * time.Millisecond, Preemptions: 23},
	}))
	want := `{"timestamp":"2024-01-15T10:35:00Z","cluster":{"nodes":{"total":4,"ready":1,"notReady":2,"cordoned":1},` +
		`"cpu":{"capacity":"1280000m","allocatable":"1240000m","requested":"248000m","used":"744000m","utilization":0.6},` +
		`"memory":{"capacity":"5Ti","allocatable":"4960Gi","requested":"1Ti","used":"3472Gi","utilization":0.7},` +
		`"gpu":{"capacity":32,"allocatable":32,"requested":15.5,"used":12,"utilization":0.375}},` +
		`"scheduling":{"pendingAllocations":142,"schedulingRate":"487/sec","avgSchedulingLatencyMs":12,"p99SchedulingLatencyMs":85,"preemptionsLast1h":23,"since":"2024-01-15T09:35:00Z"}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestQueuesAreSummedOverTenants(t *testing.T) {
	f := &lead.Figures{
		Queues: map[lead.QueueKind]lead.QueueFigures{
			{Queue: "q", Tenant: "a"}: {Units: 2, Oldest: "2024-01-15T10:28:00Z"}, {Queue: "q", Tenant: "b"}: {Units: 1, Oldest: "2024-01-15T10:27:00Z"},
		},
		Waits: map[string]lead.Wait{"q": {Mean: 12 * time.Second, P99: 119900 * time.Millisecond}, "quick": {Mean: 1234567 * time.Microsecond, P99: 2 * time.Second}},
	}
	for name, c := range map[string]struct {
		all  bool
		want string
	}{
		"an operator sees all work, and queues that are empty": {true, `[{"name":"q","depth":3,"oldestItem":"2024-01-15T10:27:00Z","avgWaitTime":"12s","p99WaitTime":"120s"},{"name":"quick","depth":0,"avgWaitTime":"1.235s","p99WaitTime":"2s"}]`},
		"a tenant sees its own work":                           {false, `[{"name":"q","depth":2,"oldestItem":"2024-01-15T10:28:00Z","avgWaitTime":"12s","p99WaitTime":"120s"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(monitor.Queues(f, "a", c.all).Queues)
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}
