package coordinator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

// A preemptor that is tried while its only possible victim is being committed
// evicts the victim afterwards (Q6).
func TestAPreemptorWaitsForItsVictimsCommit(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "high", GPUs: 4, Priority: 9})
		var once sync.Once
		c.OnStep(func(s rig.Step) error {
			if s.Name == "txn committed" && !s.After {
				once.Do(func() { pass(3 * time.Second) })
			}
			return nil
		})
		committing := make(chan error, 1)
		go func() {
			_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "low", GPUs: 4, Priority: 1})
			committing <- err
		}()
		pass(time.Second)
		if a := allocate(t, k, pushing("urgent", 4, 5)); a.Status.Phase != api.Pending {
			t.Errorf("urgent is %s", a.Status.Phase)
		}
		if err := <-committing; err != nil {
			t.Fatal(err)
		}
		phase(t, c, "urgent", api.Running)
		phase(t, c, "low", api.Preempted)
		c.Converge()
	})
}

// A victim whose preemptor was given up without an answer of the store can be
// evicted for the next one once its record was read.
func TestAPreemptorWaitsForAVictimThatIsGivenBack(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "v", GPUs: 8, Priority: 1})
		deleted := make(chan error, 1)
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			fault := rig.None
			if steps["eviction"](x) {
				once.Do(func() {
					fault = rig.Lost
					c.OnStep(func(s rig.Step) error {
						if s.Name == "read record" && s.After {
							pass(time.Second)
						}
						return nil
					})
					allocate(t, k, pushing("q", 8, 5))
					go func() {
						_, err := k.DeleteAllocation(t.Context(), rig.Namespace, "p", api.DeleteOptions{})
						deleted <- err
					}()
					pass(time.Second)
				})
			}
			return fault
		})
		allocate(t, k, pushing("p", 8, 9))
		if err := <-deleted; err != nil {
			t.Errorf("delete p: %v", err)
		}
		phase(t, c, "q", api.Running)
		phase(t, c, "v", api.Preempted)
		c.Converge()
	})
}

// A unit that counts on the room of units that are leaving evicts others once
// the node of the leaving units is out of reach (Q7).
func TestAPreemptorDoesNotWaitForANodeThatIsCutOff(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		allocate(t, k, rig.Submission{Name: "leaving", GPUs: 8, Priority: 9})
		staying := allocate(t, k, rig.Submission{Name: "low", GPUs: 8, Priority: 1})
		grace := int64(3600)
		if _, _, err := k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "leaving", GraceSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		if a := allocate(t, k, pushing("urgent", 8, 5)); a.Status.Phase != api.Pending {
			t.Errorf("urgent is %s", a.Status.Phase)
		}
		pass(time.Second)
		if evicted(c) != 1 {
			t.Error("somebody else was evicted though there will be room")
		}
		for _, a := range c.Agents() {
			if a.Node != staying.Status.NodeID {
				a.Stop()
			}
		}
		phase(t, c, "urgent", api.Running)
		phase(t, c, "low", api.Preempted)
	})
}

// A claim on quota that MinRunTime holds back is made when that time is over
// (Q8).
func TestAClaimIsMadeWhenTheMinimumRunTimeIsOver(t *testing.T) {
	const least = 20 * time.Minute
	o := rig.Options{Configure: func(c *coordinator.Config) { c.Quota.MinRunTime = least }}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 2, "queue")
		start := time.Now()
		allocate(t, k, rig.Submission{Namespace: "a", Name: "home", GPUs: 8})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "guest", GPUs: 8})
		pass(least / 2)
		mine := allocate(t, k, rig.Submission{Namespace: "b", Name: "mine", GPUs: 8, Wait: least})
		if mine.Status.Phase != api.Running {
			t.Fatalf("mine is %+v", mine.Status)
		}
		if waited := time.Since(start); waited < least || waited > least+time.Minute {
			t.Errorf("it runs %v after the others", waited)
		}
		c.Converge()
	})
}
