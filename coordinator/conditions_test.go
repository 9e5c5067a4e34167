package coordinator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

// told are the conditions of n1 that its agent sent.
func told(t *testing.T, k *rig.Coordinator) []api.Condition {
	t.Helper()
	n, err := k.GetNode(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Status.Conditions) == 0 || n.Status.Conditions[0].Type != "Ready" {
		t.Fatalf("conditions %+v, want Ready first", n.Status.Conditions)
	}
	return n.Status.Conditions[1:]
}

func TestEveryCoordinatorShowsWhatAnAgentSaysOfItself(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		all := []*rig.Coordinator{c.StartCoordinator("c1"), c.StartCoordinator("c2")}
		began := time.Now().UTC().Truncate(time.Second) // times are sent in whole seconds
		c.StartAgent("n1")
		c.AwaitReady(1)
		time.Sleep(20 * time.Second) // a heartbeat
		want := []api.Condition{
			{Type: "DiskPressure", Status: "False", Reason: "JournalHasRoom"},
			{Type: "Quarantined", Status: "False", Reason: "StoreAgrees"},
			{Type: "GPUHealthy", Status: "True", Reason: "AllHealthy"},
		}
		first := told(t, all[0])
		for i := range first {
			at, err := time.Parse(time.RFC3339, first[i].LastTransitionTime)
			if err != nil || at.Before(began) {
				t.Errorf("condition %+v: %v", first[i], err)
			}
		}
		since := first[0].LastTransitionTime
		for i := range want {
			want[i].LastTransitionTime = since
		}
		for _, k := range all {
			if diff := cmp.Diff(want, told(t, k)); diff != "" {
				t.Errorf("%s shows (-want +got):\n%s", k.ID, diff)
			}
		}

		// A stream to another coordinator, or a new one, does not make them new.
		stored := func() record.NodeStatus {
			kv, _, _, err := c.Store.Get(t.Context(), record.NodeStatusKey("n1"))
			if err != nil {
				t.Fatal(err)
			}
			status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
			if err != nil {
				t.Fatal(err)
			}
			return status
		}
		before := stored()
		time.Sleep(time.Minute)
		c.Agent("n1").Restart()
		time.Sleep(time.Minute)
		after := stored()
		if diff := cmp.Diff(before.Conditions, after.Conditions); diff != "" || after.HeardAt <= before.HeardAt {
			t.Errorf("heard at %s and %s; after a restart (-before +after):\n%s", before.HeardAt, after.HeardAt, diff)
		}

		c.Agent("n1").Stop()
		time.Sleep(2 * time.Minute)
		for i := range want {
			want[i].Message = "it was " + want[i].Status + " when the agent was last heard"
			want[i].Status = "Unknown"
		}
		for _, k := range all {
			if diff := cmp.Diff(want, told(t, k)); diff != "" {
				t.Errorf("%s shows of a node that is not heard (-want +got):\n%s", k.ID, diff)
			}
		}
	})
}
