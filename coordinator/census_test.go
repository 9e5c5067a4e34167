package coordinator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/test/rig"
)

// TestANamespaceHasBoundedAllocations: a creation beyond the bound is refused
// with the numbers; a deletion gives its room back; the next leader counts the
// same.
func TestANamespaceHasBoundedAllocations(t *testing.T) {
	options := rig.Options{Configure: func(c *coordinator.Config) { c.NamespaceAllocations = 6 }}
	bubble(t, options, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		full := func(k *rig.Coordinator, s rig.Submission, numbers string) {
			t.Helper()
			create := func() error { _, _, err := k.Allocate(t.Context(), s); return err }
			if s.Members > 0 {
				create = func() error { _, _, err := k.Job(t.Context(), s); return err }
			}
			err := create()
			var status *api.Status
			if !errors.As(err, &status) || status.Code != 429 || status.Reason != api.TooManyObjects || !strings.Contains(status.Message, numbers) {
				t.Fatalf("%s: got %v, want 429 with %q", s.Name, err, numbers)
			}
		}
		submit(t, k, rig.Submission{Name: "gang", GPUs: 1, Members: 4, Gang: 4, Wait: time.Minute})
		for i := range 2 {
			allocate(t, k, rig.Submission{Name: fmt.Sprint("a", i), GPUs: 1, Wait: time.Minute})
		}
		full(k, rig.Submission{Name: "a2", GPUs: 1}, "has 6 allocations and may have 6: there is no room for 1 more")
		remove(t, k, "a0")
		phase(t, c, "a0", "")
		full(k, rig.Submission{Name: "pair", GPUs: 1, Members: 2, Gang: 2}, "has 5 allocations and may have 6: there is no room for 2 more")
		allocate(t, k, rig.Submission{Name: "a0", GPUs: 1, Wait: time.Minute})
		full(k, rig.Submission{Name: "a2", GPUs: 1}, "has 6 allocations")

		k.Crash()
		next := c.StartCoordinator("c2")
		c.Eventually("the next leader counts the same", func() bool {
			_, _, err := next.Allocate(t.Context(), rig.Submission{Name: "a2", GPUs: 1})
			var status *api.Status
			return errors.As(err, &status) && status.Code == 429
		})
		if _, err := next.DeleteJob(t.Context(), rig.Namespace, "gang", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			c.Eventually("the job's members give their room back", func() bool {
				_, _, err := next.Allocate(t.Context(), rig.Submission{Name: fmt.Sprint("b", i), GPUs: 1, RequestID: fmt.Sprint("b", i)})
				return err == nil
			})
		}
		full(next, rig.Submission{Name: "a2", GPUs: 1}, "has 6 allocations")
		c.Converge()
	})
}
