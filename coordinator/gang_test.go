package coordinator_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// active waits until a job has that many running members.
func active(t *testing.T, c *rig.Cluster, name string, want int) *api.Job {
	t.Helper()
	var j *api.Job
	c.Eventually(fmt.Sprintf("job %s has %d running members", name, want), func() bool {
		var err error
		j, err = c.Leader().GetJob(t.Context(), rig.Namespace, name, 0)
		return err == nil && j.Status.Active == want
	})
	return j
}

// grants counts the members that agents have anything of.
func grants(c *rig.Cluster) int {
	n := 0
	for _, a := range c.Agents() {
		s, _ := a.Snapshot()
		for _, g := range s.Grants {
			if g.State != "TOMBSTONE" {
				n++
			}
		}
	}
	return n
}

func TestAGangWaitsForAllItsMembersAndHoldsNothing(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		j := submit(t, k, rig.Submission{Name: "gang", GPUs: 8, Members: 3, Gang: 3, Wait: time.Second})
		if j.Status.Phase != api.Queued || grants(c) != 0 {
			t.Errorf("%s with %d grants", j.Status.Phase, grants(c))
		}
		if a := allocate(t, k, rig.Submission{Name: "small", GPUs: 1}); a.Status.Phase != api.Running {
			t.Errorf("the gang that waits keeps others out: %+v", a.Status)
		}
		remove(t, k, "small")
		c.Converge()
		c.StartAgent("n3")
		nodes := map[string]bool{}
		for _, m := range active(t, c, "gang", 3).Status.Allocations {
			nodes[m.Node] = true
		}
		if len(nodes) != 3 {
			t.Errorf("members on %v, want three nodes", nodes)
		}
		c.Converge()
	})
}

func TestAGangWithOneSilentAgentIsFencedAsAWhole(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		c.Tap(func(m rig.Message) bool { return m.Node != "n2" || m.ToAgent.GetReserve() == nil })
		start := time.Now()
		submit(t, k, rig.Submission{Name: "gang", GPUs: 8, Members: 2, Gang: 2})
		if waited := time.Since(start); waited != 2*time.Second { // the budget for votes
			t.Errorf("stored as waiting after %v, want 2s", waited)
		}
		c.Eventually("the first member's node is free again", func() bool { return grants(c) == 0 })
		c.Tap(nil)
		active(t, c, "gang", 2)
		c.Converge()
	})
}

func TestWhatAnAttemptThatFailedHadTakenGoesToOthers(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		c.Tap(func(m rig.Message) bool { return m.Node != "n2" || m.ToAgent.GetReserve() == nil })
		var wg sync.WaitGroup
		wg.Go(func() { submit(t, k, rig.Submission{Name: "gang", GPUs: 8, Members: 2, Gang: 2}) })
		c.Eventually("n1 has promised", func() bool { return grants(c) == 1 })
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Priority: 1})
		if a.Status.Phase != api.Pending {
			t.Errorf("a is %s while all is promised", a.Status.Phase)
		}
		c.Tap(nil)
		wg.Wait()
		phase(t, c, "a", api.Running) // it is ahead of the gang's next attempt
		c.Converge()
	})
}

func TestAGangGrowsWhereThereIsRoom(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		submit(t, k, rig.Submission{Name: "gang", GPUs: 8, Members: 4, Gang: 2})
		c.Converge()
		if n := grants(c); n != 0 {
			t.Fatalf("%d members run before the gang's first two can", n)
		}
		for n := 2; n <= 4; n++ {
			c.StartAgent(resource.NodeID(fmt.Sprint("n", n)))
			j := active(t, c, "gang", n)
			if j.Status.Phase != api.Running {
				t.Errorf("%d members, the job is %s", n, j.Status.Phase)
			}
			c.Converge()
		}
		k.Crash() // it grows under the next leader as well
		c.StartCoordinator("c2")
		c.AwaitReady(4)
		active(t, c, "gang", 4)
		c.Converge()
	})
}

func TestGrowthWaitsForItsGangUnderTheNextLeaderToo(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		submit(t, k, rig.Submission{Name: "gang", GPUs: 8, Members: 3, Gang: 2})
		k.Crash()
		k = c.StartCoordinator("c2")
		c.AwaitReady(1)
		c.Converge()
		if n := grants(c); n != 0 {
			t.Fatalf("%d members run before the gang's first two can", n)
		}
		e, err := k.ExplainJob(t.Context(), rig.Namespace, "gang", service.ExplainOptions{Operator: true})
		if err != nil || e.Members != 2 || e.Fit != 1 {
			t.Errorf("%v, %+v", err, e)
		}
		c.StartAgent("n2")
		active(t, c, "gang", 2)
		c.Converge()
	})
}

func TestMembersOfAJobThatIsNoGangRunAsTheyFit(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "loose", GPUs: 8, Members: 3})
		active(t, c, "loose", 2)
		c.Converge()
		c.StartAgent("n3")
		active(t, c, "loose", 3)
		c.Converge()
	})
}

func TestHigherPriorityIsFirstWhenRoomComes(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		allocate(t, k, rig.Submission{Name: "low", GPUs: 8})
		high := allocate(t, k, rig.Submission{Name: "high", GPUs: 8, Priority: 100, Policy: "Never"})
		if high.Status.QueuePosition != 1 {
			t.Errorf("high is at %d", high.Status.QueuePosition)
		}
		remove(t, k, "a")
		phase(t, c, "high", api.Running)
		phase(t, c, "low", api.Pending)
		c.Converge()
		remove(t, k, "high")
		phase(t, c, "low", api.Running)
		c.Converge()
	})
}
