package coordinator_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
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
		var asked sync.WaitGroup
		for range 5 {
			asked.Go(func() {
				a, _, err := k.WhatIf(t.Context(), rig.Namespace, "b")
				if err != nil || len(a.Never) > 0 || !slices.ContainsFunc(a.Hints, func(h whatif.Hint) bool {
					return h.Code == whatif.Uncordon && slices.Equal(h.Nodes, []resource.NodeID{"n1"})
				}) {
					t.Errorf("%v, %+v", err, a)
				}
			})
		}
		asked.Wait()
		if a, _, err := k.WhatIf(t.Context(), rig.Namespace, "huge"); err != nil || len(a.Never) == 0 || a.Never[0].Code != whatif.NodeTooSmall {
			t.Errorf("%v, %+v", err, a)
		}
		if _, err := k.SetUnschedulable(t.Context(), "n1", false); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "b", "Running")
		if a, _, err := k.WhatIf(t.Context(), rig.Namespace, "b"); a != nil || err != nil {
			t.Errorf("of a unit that runs: %v, %+v", err, a)
		}
		_, _, err := k.WhatIf(t.Context(), rig.Namespace, "nobody")
		refused(t, err, 404, "no allocation and no job nobody found")
	})
}
