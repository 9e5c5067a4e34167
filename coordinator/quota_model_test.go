package coordinator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

const a100 = resource.Name("nvidia.com/gpu.a100")

// TestWorkOfAnyModelIsChargedToTheModelThatItGets: a quota of a model holds work that
// names none, also after an election, and the end of such work gives the model back.
func TestWorkOfAnyModelIsChargedToTheModelThatItGets(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 2, "queue")
		q := resourceQuota("models", quantities{a100: "3"})
		q.Metadata.Namespace = "a"
		restrict(t, k, q)
		allocate(t, k, rig.Submission{Namespace: "a", Name: "a1", GPUs: 2})
		_, _, err := k.Allocate(t.Context(), rig.Submission{Namespace: "a", Name: "a2", GPUs: 2})
		if err != nil {
			t.Fatal(err)
		}
		used := func() string {
			shown, err := c.Leader().GetResourceQuota(t.Context(), "a", "models")
			if err != nil {
				t.Fatal(err)
			}
			return shown.Status.Used[a100]
		}
		waits := func() {
			t.Helper()
			o, err := c.Leader().GetAllocation(t.Context(), "a", "a2", 0)
			if err != nil {
				t.Fatal(err)
			}
			const want = "exceeded quota: nvidia.com/gpu.a100 limit 3, requested 2, used 2"
			if o.Status.Phase != api.Pending || o.Status.Message != want {
				t.Errorf("%s: %q, want %q", o.Status.Phase, o.Status.Message, want)
			}
		}
		waits()
		c.Converge()
		before := standing(t, c, "Lab")
		k.Crash()
		c.StartCoordinator("c2")
		c.AwaitReady(2)
		if diff := cmp.Diff(before, standing(t, c, "Lab")); diff != "" {
			t.Errorf("the tree (-before +after):\n%s", diff)
		}
		if got := used(); got != "2" {
			t.Errorf("after the election %s are used", got)
		}
		waits()
		end(t, c, "a", "a1")
		running(t, c, "a", "a2")
		if got := used(); got != "2" {
			t.Errorf("of the second unit %s are used", got)
		}
		end(t, c, "a", "a2")
		if got := used(); got != "0" && got != "" {
			t.Errorf("after all %s are used", got)
		}
		c.Converge()
	})
}
