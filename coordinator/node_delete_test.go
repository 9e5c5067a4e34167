package coordinator_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// brieflyKept has terminal records collected soon.
func brieflyKept(c *coordinator.Config) { c.RecordRetention = 40 * time.Second }

// keysOf lists a node's keys in the store.
func keysOf(t *testing.T, c *rig.Cluster, node resource.NodeID) []record.KV {
	t.Helper()
	kvs, _, err := c.Store.Range(t.Context(), record.NodeIn(node), store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return kvs
}

// unknown waits until no coordinator shows a node.
func unknown(t *testing.T, c *rig.Cluster, node string, all ...*rig.Coordinator) {
	t.Helper()
	for _, k := range all {
		c.Eventually(k.ID+" does not know "+node, func() bool {
			_, err := k.GetNode(t.Context(), node)
			list, listErr := k.ListNodes(t.Context())
			if listErr != nil || rig.Code(err) != 404 {
				return false
			}
			for _, n := range list.Items {
				if n.Metadata.Name == node {
					t.Errorf("%s lists %s", k.ID, node)
				}
			}
			return true
		})
	}
}

func TestANodeThatMayBeInUseIsNotDeleted(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1})
		phase(t, c, "a", api.Running)
		time.Sleep(20 * time.Second)
		_, err := k.DeleteNode(t.Context(), "n1", api.Preconditions{})
		refused(t, err, 409, "node n1 is alive: a coordinator hears its agent")
		_, err = k.DeleteNode(t.Context(), "nowhere", api.Preconditions{})
		refused(t, err, 404, "node nowhere not found")
		lose(t, c, "n1")
		_, err = k.DeleteNode(t.Context(), "n1", api.Preconditions{})
		refused(t, err, 409, "default/alloc/a/0 among them. Start its agent and drain it with `muster drain n1`, or, if its machine is off for good, say so with `muster fence n1 --confirm-dead`")
		c.Agent("n1").Start()
		c.AwaitReady(1)
		c.Converge()
	})
}

func TestADeletedNodeIsForgottenAndRegistersAsNewWhenItComesBack(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		follower := c.StartCoordinator("c2")
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		allocate(t, k, rig.Submission{Name: "b", GPUs: 8})
		remove(t, k, "b")
		phase(t, c, "b", "")
		gone := resource.NodeID("n1")
		if phase(t, c, "a", api.Running).Status.NodeID == gone {
			gone = "n2"
		}
		if _, err := k.SetUnschedulable(t.Context(), string(gone), true); err != nil {
			t.Fatal(err)
		}
		lose(t, c, gone)
		unanswered, hit := rig.Once(rig.AnswerLost, func(x record.Txn) bool { return rig.Touches(x, record.NodeIdentityKey(gone)) })
		k.Gate.OnTxn(unanswered)
		n, err := k.DeleteNode(t.Context(), string(gone), api.Preconditions{}) // its Txn has no answer
		if err != nil || n.Metadata.Name != string(gone) {
			t.Fatalf("%v, %+v", err, n)
		}
		<-hit
		k.Gate.OnTxn(nil)
		if kvs := keysOf(t, c, gone); len(kvs) > 0 {
			t.Errorf("left in the store: %v", kvs)
		}
		unknown(t, c, string(gone), k, follower)
		_, err = k.DeleteNode(t.Context(), string(gone), api.Preconditions{})
		refused(t, err, 404, "not found")

		k.Stop() // the next leader does not know it either
		c.Eventually("the other leads", func() bool { return c.Leader() == follower })
		unknown(t, c, string(gone), follower)

		c.Agent(gone).Start()
		follower.AgentSeen(gone, string(gone)) // gossip reports it
		c.AwaitReady(2)
		n, err = follower.GetNode(t.Context(), string(gone))
		if err != nil || n.Spec.Unschedulable {
			t.Errorf("%v: it is as it was: %+v", err, n)
		}
		allocate(t, follower, rig.Submission{Name: "b", GPUs: 8})
		phase(t, c, "b", api.Running)
		c.Converge()
	})
}

// requires deletes a node that has left, of the version and the uid that clients see; an
// older version and another uid are refused before, with both values.
func requires(t *testing.T, k *rig.Coordinator, id string) {
	t.Helper()
	seen, err := k.GetNode(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]api.Preconditions{
		"is at resourceVersion " + seen.Metadata.ResourceVersion + ", the change was made from 1": {ResourceVersion: "1"},
		"has the uid " + seen.Metadata.UID + ", the change is for the uid other":                  {UID: "other"},
	} {
		_, err := k.DeleteNode(t.Context(), id, p)
		if rig.Code(err) != 409 || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want 409 %q", p, err, want)
		}
	}
	p := api.Preconditions{UID: seen.Metadata.UID, ResourceVersion: seen.Metadata.ResourceVersion}
	if _, err := k.DeleteNode(t.Context(), id, p); err != nil {
		t.Fatal(err)
	}
}

func TestADeadNodeThatWasDeletedHandsNothingOutThatItStillHolds(t *testing.T) {
	o := beating
	o.Configure = brieflyKept
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 6})
		c.Converge()
		lose(t, c, "n1")
		fence(t, c, "n1", api.FenceOptions{ConfirmDead: true, Reason: "sold"})
		phase(t, c, "a", api.Failed)
		remove(t, k, "a")
		phase(t, c, "a", "")
		requires(t, k, "n1")
		c.Eventually("no record waits for it", func() bool { return len(c.Records()) == 0 })
		k.Stop()
		k = c.StartCoordinator("c2")

		// It was not sold after all, and by its journal the 6 are held.
		c.Agent("n1").Start()
		k.AgentSeen("n1", "n1")
		c.AwaitReady(1)
		allocate(t, k, rig.Submission{Name: "two", GPUs: 2, Wait: time.Minute})
		phase(t, c, "two", api.Running)
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 1, Wait: time.Minute})
		if b.Status.Phase != api.Pending {
			t.Errorf("b is %s on a device of a grant that nobody has ended", b.Status.Phase)
		}
		s, ok := c.Agent("n1").Snapshot()
		held := 0
		for _, g := range s.Grants {
			held += len(g.Assignment.GPUs)
		}
		if !ok || held != 8 {
			t.Errorf("the agent holds %d GPUs of %+v, want 8", held, s.Grants)
		}

		// An operator, knowing that no workload runs there, gives it a new
		// journal.
		c.Agent("n1").Replace()
		phase(t, c, "b", api.Running)
		phase(t, c, "two", api.Running)
		c.Converge()
	})
}

func TestANextLeaderDoesNotWaitForWhatADeletedNodeHasToTell(t *testing.T) {
	o := beating
	o.Configure = brieflyKept
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		at := allocateOn(t, c, rig.Submission{Name: "a", GPUs: 6})
		lose(t, c, at)
		fence(t, c, at, api.FenceOptions{ConfirmDead: true})
		phase(t, c, "a", api.Failed)
		time.Sleep(5 * time.Minute)
		waits := func() (n int) {
			for _, r := range c.Records() {
				n += len(r.Unheard)
			}
			return n
		}
		if waits() != 1 {
			t.Fatalf("records wait for %d nodes, want 1", waits())
		}
		k.Gate.OnTxn(func(x record.Txn) rig.Fault { // the leader dies before it collects the records that it does not wait for any more
			for _, op := range x.Then {
				if op.Delete && strings.HasPrefix(op.Key, record.TxPrefix) {
					return rig.Lost
				}
			}
			return rig.None
		})
		if _, err := k.DeleteNode(t.Context(), string(at), api.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		k.Stop()
		c.StartCoordinator("c2")
		c.Eventually("the record is collected", func() bool { return waits() == 0 })
		c.Agent(at).Replace()
		c.Leader().AgentSeen(at, string(at))
		c.Converge()
	})
}

// TestANodeStaysWhileItsQuarantineIsBeingEnded: its agent ends in the middle of
// that, for longer than its lease, and an operator thinks it has left.
func TestANodeStaysWhileItsQuarantineIsBeingEnded(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		lossy(t, c)
		k := c.Leader()
		held, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if rig.Touches(x, record.TxPrefix) {
				once.Do(func() { close(held); <-goOn })
			}
			return rig.None
		})
		ended := make(chan error)
		go func() {
			_, err := k.ReconcileNode(t.Context(), "n1", api.ReconcileOptions{Mode: api.ReconcileAdopt})
			ended <- err
		}()
		<-held
		lose(t, c, "n1")
		_, err := k.DeleteNode(t.Context(), "n1", api.Preconditions{})
		refused(t, err, 409, "quarantine is being ended")
		close(goOn)
		refused(t, <-ended, 409, "ask again")
		c.Agent("n1").Start()
		for _, n := range []resource.NodeID{"n1", "n2", "n3"} {
			c.Eventually(string(n)+" is reconciled", func() bool {
				_, err := k.ReconcileNode(t.Context(), string(n), api.ReconcileOptions{Mode: api.ReconcileAdopt})
				return err == nil || strings.Contains(err.Error(), "is not in quarantine")
			})
		}
		c.AwaitReady(3)
		c.Converge()
	})
}
