package coordinator_test

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// TestWhatAGangHasFreedInPartIsNotShownAsHeld: one member's agent is stopped, the
// other one's devices are another's already, at every coordinator.
func TestWhatAGangHasFreedInPartIsNotShownAsHeld(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		follower := c.StartCoordinator("c2")
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 2, Gang: 2})
		left := phase(t, c, "j-0", api.Running)
		stays := phase(t, c, "j-1", api.Running)
		c.Agent(stays.Status.NodeID).Stop()
		if err := deleteJob(t, k, "j"); err != nil {
			t.Fatal(err)
		}
		c.Eventually("j-0 is shown without devices", func() bool {
			a, err := k.GetAllocation(t.Context(), rig.Namespace, "j-0", 0)
			return err == nil && a.Status.Phase == api.Terminating && a.Status.Assignment == nil
		})
		allocate(t, k, rig.Submission{Name: "b", GPUs: 8})
		if b := phase(t, c, "b", api.Running); b.Status.NodeID != left.Status.NodeID {
			t.Fatalf("b runs on %s, want %s", b.Status.NodeID, left.Status.NodeID)
		}
		for _, at := range []*rig.Coordinator{k, follower} {
			c.Eventually("no device is shown twice", func() bool {
				list, err := at.ListAllocations(t.Context(), rig.Namespace, service.Page[api.Allocation]{})
				if err != nil || len(list.Items) != 3 {
					return false
				}
				holders := map[string]int{}
				for _, a := range list.Items {
					if a.Status.Assignment == nil {
						continue
					}
					for _, g := range a.Status.Assignment.GPUs {
						holders[string(a.Status.NodeID)+"/"+g.UUID] += int(g.Milli)
					}
				}
				for _, held := range holders {
					if held > int(resource.WholeDevice) {
						return false
					}
				}
				return len(holders) == 16 // of b, and of the member that still holds
			})
		}
		c.Agent(stays.Status.NodeID).Start()
		phase(t, c, "j-1", "")
		c.Converge()
	})
}
