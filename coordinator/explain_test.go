package coordinator_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/rig"
)

// TestQuestionsAboutUnitsThatWait: several at once, on a real leader. What a hint says
// comes true.
func TestQuestionsAboutUnitsThatWait(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		if _, err := k.SetUnschedulable(t.Context(), "n1", true); err != nil {
			t.Fatal(err)
		}
		allocate(t, k, rig.Submission{Name: "b", GPUs: 4, Wait: time.Second})
		allocate(t, k, rig.Submission{Name: "huge", GPUs: 64, Wait: time.Second})
		why := func(name string) (*api.Explanation, error) {
			return k.ExplainAllocation(t.Context(), rig.Namespace, name, service.ExplainOptions{Operator: true})
		}
		var asked sync.WaitGroup
		for range 5 {
			asked.Go(func() {
				a, err := why("b")
				if err != nil || a.Outlook.Can != api.CanLater || !slices.ContainsFunc(a.Help, func(h api.Help) bool {
					return h.Code == "Uncordon" && strings.Contains(h.Message, "n1")
				}) {
					t.Errorf("%v, %+v", err, a)
				}
			})
		}
		asked.Wait()
		if a, err := why("huge"); err != nil || a.Outlook.Can != api.CanNever || a.Outlook.Reason == nil || a.Outlook.Reason.Code != "NodeTooSmall" {
			t.Errorf("%v, %+v", err, a)
		}
		if _, err := k.SetUnschedulable(t.Context(), "n1", false); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "b", "Running")
		if a, err := why("b"); err != nil || a.Outlook != nil || len(a.Help) > 0 {
			t.Errorf("of a unit that runs: %v, %+v", err, a)
		}
		_, err := why("nobody")
		refused(t, err, 404, "nobody")
	})
}
