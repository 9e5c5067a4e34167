package cost_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/lead"
)

// A count in steps ends, says the same as a count at once, and is not upset by units
// that go in between.
func TestFiguresAreCountedInSteps(t *testing.T) {
	const hosts = 600 // three steps of nodes
	c := alone.New(alone.Options{Nodes: hosts, Rules: lead.Rules{NamespaceAllocations: 1 << 20}}, time.Unix(1_700_000_000, 0))
	for i := range 4 {
		submitGPUs(t, c, fmt.Sprint("a", i), 8)
	}
	count := c.Leader().CountFigures()
	steps := 1
	for ; !count.Step(); steps++ {
		if steps > 100 {
			t.Fatal("the count does not end")
		}
	}
	if steps != 4 {
		t.Errorf("%d steps, want 3 for the nodes and 1 for the units", steps)
	}
	if diff := cmp.Diff(c.Leader().Figures(), count.Figures(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("figures (-at once +in steps):\n%s", diff)
	}
	between := c.Leader().CountFigures()
	zero := int64(0)
	if _, status := c.Ask(lead.DeleteAllocation{Namespace: "default", Name: "a0", Options: api.DeleteOptions{GracePeriodSeconds: &zero}}); status != nil {
		t.Fatal(status)
	}
	for !between.Step() {
	}
	running := func(f *lead.Figures) (n int) {
		for kind, units := range f.Units {
			if kind.Phase == "Running" {
				n += units
			}
		}
		return n
	}
	if got := running(count.Figures()); got != 4 {
		t.Errorf("%d units run, want 4", got)
	}
	if got := running(between.Figures()); got != 3 {
		t.Errorf("%d units run of a count during which one was deleted, want 3", got)
	}
}

// submitGPUs submits an allocation that has a place.
func submitGPUs(t *testing.T, c *alone.Cluster, name string, gpus int) {
	t.Helper()
	text := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"memory":"512Mi","nvidia.com/gpu":"%d"}}}}`, name, gpus)
	doc, status := api.DecodeAllocation(text)
	if status != nil {
		t.Fatal(status)
	}
	if _, status := c.Ask(lead.CreateAllocation{Submitted: lead.Submitted{Namespace: "default", Document: text}, Document: doc}); status != nil {
		t.Fatal(status)
	}
}

// A node that an operator has created counts before its agent registers. The metrics of
// such a cluster ended the coordinator once.
func TestFiguresCountANodeWithoutAnAgent(t *testing.T) {
	c := alone.New(alone.Options{Nodes: 1}, time.Unix(1_700_000_000, 0))
	if _, status := c.Ask(lead.CreateNode{Node: api.Node{Metadata: api.ObjectMeta{Name: "later"}}}); status != nil {
		t.Fatal(status)
	}
	nodes := c.Leader().Figures().Nodes
	if len(nodes) != 2 || nodes[0].Busy+nodes[1].Busy != 0 {
		t.Errorf("%+v", nodes)
	}
}
