package coordinator_test

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

func TestANodesLeaseOutlivesTheCoordinatorThatHearsIt(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		byID := map[string]*rig.Coordinator{}
		for _, id := range []string{"c1", "c2", "c3"} {
			byID[id] = c.StartCoordinator(id)
		}
		c.StartAgent("n1")
		c.AwaitReady(1)
		hears := func() string {
			kv, found, _, err := c.Store.Get(t.Context(), record.NodeLeaseKey("n1"))
			if err != nil || !found {
				return ""
			}
			lease, err := record.Decode[record.NodeLease](kv.Key, kv.Value)
			if err != nil {
				t.Error(err)
			}
			return lease.Coordinator
		}
		c.Eventually("somebody hears the agent", func() bool { return hears() != "" })
		for range 2 { // two of three die, one after the other
			last := hears()
			byID[last].Crash()
			for range 90 {
				time.Sleep(time.Second)
				if hears() == "" {
					t.Fatalf("the lease ended after the death of %s", last)
				}
			}
			if now := hears(); now == last {
				t.Errorf("the lease is still %s's, which is dead", now)
			}
		}
	})
}
