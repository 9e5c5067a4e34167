package coordinator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/storetest"
	"github.com/musterd/muster/test/rig"
)

// TestARestoredStore: leader and followers drop the objects that are no longer
// there, in a new term, and serve on.
func TestARestoredStore(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(0)
		other := c.StartCoordinator("c9")
		submit(t, k, rig.Submission{Name: "kept", GPUs: 1, Members: 1})
		pass(time.Second)
		backup := c.Store.Backup()
		submit(t, k, rig.Submission{Name: "lost", GPUs: 1, Members: 1})
		pass(time.Second)
		before, _, err := storetest.CurrentLeader(t.Context(), c.Store)
		if err != nil {
			t.Fatal(err)
		}
		c.Store.Restore(backup)
		var back *record.WentBackError
		if _, _, _, err := c.Store.Get(t.Context(), record.Root); !errors.As(err, &back) {
			t.Fatalf("the test's own client: %v", err)
		}
		c.Store.Acknowledge(back)
		pass(30 * time.Second)
		for name, k := range map[string]*rig.Coordinator{"the leader of before": k, "the follower": other} {
			if j, err := k.GetJob(t.Context(), rig.Namespace, "kept", 0); err != nil || j.Status.Phase != api.Queued {
				t.Errorf("%s: what was in the backup: %+v, %v", name, j, err)
			}
			if _, err := k.GetJob(t.Context(), rig.Namespace, "lost", 0); rig.Code(err) != 404 {
				t.Errorf("%s: what was not: %v", name, err)
			}
		}
		after, found, err := storetest.CurrentLeader(t.Context(), c.Store)
		if err != nil || !found || after.Key == before.Key {
			t.Errorf("led by %+v after %+v, %v: want a new term", after, before, err)
		}
		submit(t, c.Leader(), rig.Submission{Name: "new", GPUs: 1, Members: 1})
	})
}
