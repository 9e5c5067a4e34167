package coordinator_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/rig"
)

func TestAFollowerNamesTheLeaderForWhatOnlyThatCanDo(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		synctest.Wait()
		_, _, err := f.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 1})
		refused(t, err, 503, "coordinator c2 does not lead; ask c1 at http://c1")
		_, err = f.ExplainAllocation(t.Context(), rig.Namespace, "a", service.ExplainOptions{Operator: true})
		refused(t, err, 503, "ask c1")
		nodes, err := f.ListNodes(t.Context())
		if err != nil || len(nodes.Items) != 1 {
			t.Errorf("the follower shows %d nodes, %v", len(nodes.Items), err)
		}
		k.Stop() // it resigns: the follower leads at once
		start := time.Now()
		if l := c.Leader(); l != f || time.Since(start) > time.Second {
			t.Errorf("%s leads after %v", l.ID, time.Since(start))
		}
		c.AwaitReady(1)
		allocate(t, f, rig.Submission{Name: "a", GPUs: 1})
		c.Converge()
	})
}

func TestACoordinatorWithoutALeaderSaysSo(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("c1")
		k.Stop()
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 1})
		refused(t, err, 503, "knows of no leader yet")
	})
}

func TestAWaitEndsWithTheTermAndTheNextTermServes(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		answered := make(chan error, 1)
		go func() {
			_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "b", GPUs: 8, Wait: time.Hour})
			answered <- err
		}()
		phase(t, c, "b", api.Pending)
		depose(t, c)
		refused(t, <-answered, 503, "lost its leadership")
		c.AwaitReady(1) // the same coordinator, in another term
		phase(t, c, "b", api.Pending)
		remove(t, c.Leader(), "a")
		phase(t, c, "b", api.Running)
		c.Converge()
	})
}

func TestALeaderThatCannotRenewStopsAtHalfItsLease(t *testing.T) {
	bubble(t, rig.Options{Configure: func(config *coordinator.Config) { config.LeaseTTL = 10 * time.Second }}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		start := time.Now()
		k.Gate.FailLeases(errors.New("the store is out of reach"))
		c.Eventually("the leader has stopped", func() bool { return !k.Leading() })
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("it went on for %v", took)
		}
		c.Eventually("the other one leads", f.Leading)
		k.Gate.FailLeases(nil)
		c.AwaitReady(1)
		allocate(t, f, rig.Submission{Name: "a", GPUs: 8})
		c.Converge()
	})
}

func TestAStoreThatIsAwayAtAnElectionDoesNotEndTheProcess(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		k.Gate.FailLeases(errors.New("the store is out of reach"))
		depose(t, c)
		c.Eventually("the term has ended", func() bool { return !k.Leading() })
		timer := time.NewTimer(30 * time.Second)
		<-timer.C
		if k.Leading() || k.Err() != nil {
			t.Fatalf("leads %t, ended with %v", k.Leading(), k.Err())
		}
		k.Gate.FailLeases(nil)
		c.AwaitReady(1)
		phase(t, c, "a", api.Running)
		c.Converge()
	})
}

func TestAStateThatCannotBeReadEndsTheProcessWithItsKey(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		key := record.UnitPath{Namespace: "default", Kind: record.AllocUnit, Name: "a"}.Key()
		if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(key, []byte("{"))}}); err != nil {
			t.Fatal(err)
		}
		k := c.StartCoordinator("c1")
		c.Eventually("Run has returned", func() bool { return k.Err() != nil })
		if err := k.Err(); !contains(err, key) {
			t.Errorf("error %v, want one that names %s", err, key)
		}
	})
}

func TestADeposedLeaderRefusesNoCreationForGood(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["enqueue"](x) {
				k.Gate.OnTxn(nil)
				depose(t, c) // its compare of the leader's key fails
			}
			return rig.None
		})
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "b", GPUs: 8, RequestID: "rb"})
		refused(t, err, 503, "ask again")
		again(t, c, "ask again", func(k *rig.Coordinator) error {
			_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "b", GPUs: 8, RequestID: "rb"})
			return err
		})
		phase(t, c, "b", api.Pending)
		c.Converge()
	})
}
