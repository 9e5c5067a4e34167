package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/rig"
)

// TestTheDeletionOfAVictimIsAnsweredAtOnce: not at the end of its grace, with its
// agent or without it, and the next leader keeps to the answer.
func TestTheDeletionOfAVictimIsAnsweredAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		stopped bool // its agent
		crash   bool // of the leader that answered
	}{
		"its agent runs":                  {},
		"its agent is stopped":            {stopped: true},
		"the leader crashes":              {crash: true},
		"the agent stops, so does leader": {stopped: true, crash: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, cluster *rig.Cluster) {
				k := cluster.Bring(1)
				allocate(t, k, rig.Submission{Name: "v", GPUs: 8, Priority: 1})
				allocate(t, k, pushing("p", 8, 9))
				phase(t, cluster, "v", api.Terminating)
				if c.stopped {
					cluster.Agent("n1").Stop()
				}
				for range 2 { // a repetition is answered like the first
					began := time.Now()
					a, err := k.DeleteAllocation(t.Context(), rig.Namespace, "v", api.DeleteOptions{Reason: "enough"})
					if took := time.Since(began); err != nil || took > time.Second { // of the bubble's clock
						t.Fatalf("%v after %s", err, took)
					}
					if got := a.Status.Conditions[0]; a.Status.Phase != api.Terminating || got.Type != "Terminating" ||
						!strings.Contains(got.Message, "gives way to default/alloc/p/0") {
						t.Errorf("%s, %+v", a.Status.Phase, got)
					}
				}
				if c.crash {
					k.Crash()
					cluster.StartCoordinator("c2")
					cluster.Eventually("another leads", func() bool { return cluster.Leader() != nil })
				}
				if c.stopped {
					cluster.Agent("n1").Start()
				}
				phase(t, cluster, "v", "")
				phase(t, cluster, "p", api.Running)
				cluster.Converge()
			})
		})
	}
}

// TestTheDeletionOfAPreemptorThatIsTakenOverIsAnsweredAtOnce: the new leader does
// not wait for the agents that keep its place.
func TestTheDeletionOfAPreemptorThatIsTakenOverIsAnsweredAtOnce(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "v", GPUs: 8, Priority: 1})
		allocate(t, k, pushing("p", 8, 9))
		phase(t, c, "v", api.Terminating)
		c.Agent("n1").Stop()
		k.Crash()
		c.StartCoordinator("c2")
		c.Eventually("another leads", func() bool { return c.Leader() != nil })
		began := time.Now()
		if _, err := c.Leader().DeleteAllocation(t.Context(), rig.Namespace, "p", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second { // of the bubble's clock
			t.Errorf("answered after %s", took)
		}
		c.Agent("n1").Start()
		phase(t, c, "p", "")
		phase(t, c, "v", api.Preempted)
		c.Converge()
	})
}
