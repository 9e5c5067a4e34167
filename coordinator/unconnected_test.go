package coordinator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/rig"
)

// A new leader shows an assignment in full before the agent's stream is open:
// models and NUMA nodes are then those that the node registered.
func TestANewLeaderShowsAssignmentsOfNodesThatAreNotConnected(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		again(t, c, "create a", func(k *rig.Coordinator) error {
			_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 2, RequestID: "ra"})
			return err
		})
		phase(t, c, "a", api.Running)
		before, err := k.GetAllocation(t.Context(), rig.Namespace, "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		k.Stop()
		c.Agent("n1").Stop()
		c.StartCoordinator("c2")
		c.Eventually("the next coordinator leads", func() bool { return c.Leader() != nil })
		after, err := c.Leader().GetAllocation(t.Context(), rig.Namespace, "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before.Status.Assignment, after.Status.Assignment); d != "" {
			t.Errorf("the assignment has changed (-before +after):\n%s", d)
		}
		c.Agent("n1").Start()
		c.Converge()
	})
}
