package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

func TestADrainEmptiesANode(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "gang", GPUs: 6, Members: 2, Gang: 2, Wait: time.Minute})
		allocate(t, k, rig.Submission{Name: "a", GPUs: 2})
		at := phase(t, c, "a", api.Running).Status.NodeName
		grace := int64(20)
		options := api.DrainOptions{GracePeriodSeconds: &grace, Reason: "a new fan"}
		d, err := k.DrainNode(t.Context(), at, options)
		if err != nil || d.Status != "Draining" || d.AllocationsToEvict != 2 || d.Progress != (api.DrainProgress{Pending: 2}) || d.EstimatedCompletionTime != "2000-01-01T00:00:21Z" {
			t.Errorf("%v, %+v", err, d)
		}
		again, err := k.DrainNode(t.Context(), at, options) // nobody gets notice, or is counted, twice
		if err != nil || *again != *d || again.EstimatedCompletionTime != d.EstimatedCompletionTime {
			t.Errorf("%v, %+v", err, again)
		}
		c.Eventually("the node is empty", func() bool {
			d, err := k.DrainNode(t.Context(), at, options)
			if err != nil || d.AllocationsToEvict != 2 || d.Progress.Evicted+d.Progress.Pending != 2 {
				t.Errorf("%v, %+v: want two allocations, evicted or pending", err, d)
			}
			return err == nil && d.Status == "Drained" && d.Progress.Evicted == 2
		})
		if a := phase(t, c, "a", api.Preempted); a.Status.Message != "a new fan" {
			t.Errorf("a says %q", a.Status.Message)
		}
		phase(t, c, "gang-0", api.Pending) // it needs both nodes
		phase(t, c, "gang-1", api.Pending)
		c.Converge()
		if _, err := k.SetUnschedulable(t.Context(), at, false); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "gang-1", api.Running)
		_, err = k.DrainNode(t.Context(), "nowhere", api.DrainOptions{})
		refused(t, err, 404, "nowhere")
		c.Converge()
	})
}

// An agent that does not answer keeps its allocations beyond their grace: the drain
// counts them as failed, at the next leader too, until the agent is back.
func TestADrainCountsTheAllocationsThatDoNotLeave(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		for _, name := range []string{"a", "b"} {
			allocate(t, k, rig.Submission{Name: name, GPUs: 1})
		}
		at := phase(t, c, "a", api.Running).Status.NodeName
		c.Agent(resource.NodeID(at)).Kill()
		grace := int64(20)
		drain := func() *api.Drain {
			d, err := c.Leader().DrainNode(t.Context(), at, api.DrainOptions{GracePeriodSeconds: &grace})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		if d := drain(); d.AllocationsToEvict != 2 || d.Progress != (api.DrainProgress{Pending: 2}) {
			t.Errorf("at first: %+v", d)
		}
		time.Sleep(75 * time.Second) // of the bubble
		if d := drain(); d.Status != "Draining" || d.Progress != (api.DrainProgress{Pending: 2}) {
			t.Errorf("within the patience: %+v", d)
		}
		time.Sleep(10 * time.Second)
		if d := drain(); d.Status != "Draining" || d.AllocationsToEvict != 2 || d.Progress != (api.DrainProgress{Failed: 2}) {
			t.Errorf("beyond the grace: %+v", d)
		}
		k.Stop()
		c.StartCoordinator("c2")
		if d := drain(); d.AllocationsToEvict != 2 || d.Progress != (api.DrainProgress{Failed: 2}) {
			t.Errorf("at the next leader: %+v", d)
		}
		c.Agent(resource.NodeID(at)).Start()
		c.Eventually("the node is empty", func() bool { return drain().Status == "Drained" })
		if d := drain(); d.AllocationsToEvict != 2 || d.Progress != (api.DrainProgress{Evicted: 2}) || d.EstimatedCompletionTime != "" {
			t.Errorf("at the end: %+v", d)
		}
		if _, err := c.Leader().SetUnschedulable(t.Context(), at, false); err != nil {
			t.Fatal(err)
		}
		if d := drain(); d.Status != "Drained" || d.AllocationsToEvict != 0 {
			t.Errorf("a new drain of an empty node: %+v", d)
		}
		c.Converge()
	})
}

func TestAReasonMayBeLongerThanAgentsTakeIt(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		reason := strings.Repeat("ü", 512)
		for _, name := range []string{"a", "b"} {
			allocate(t, k, rig.Submission{Name: name, GPUs: 1})
		}
		if _, err := k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{Reason: reason}); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "a", "")
		if _, err := k.PreemptAllocation(t.Context(), rig.Namespace, api.PreemptionRequest{TargetAllocation: "b", Reason: reason, InitiatedBy: "me"}); err != nil {
			t.Fatal(err)
		}
		if b := phase(t, c, "b", api.Preempted); b.Status.Message != reason+" (me)" {
			t.Errorf("b says %q", b.Status.Message)
		}
		c.Converge()
	})
}
