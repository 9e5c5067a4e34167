package coordinator_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/store/storetest"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// TestARestorationIsNoticedWithoutALeader: heartbeats that go on are enough for
// an agent to look.
func TestARestorationIsNoticedWithoutALeader(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		pass(15 * time.Second) // the agents have registered because of the election
		backup := c.Store.Backup()
		age(t, c)
		allocate(t, k, rig.Submission{Name: "lost", GPUs: 8, Wait: time.Minute})
		allocate(t, k, rig.Submission{Name: "too", GPUs: 8, Wait: time.Minute})
		c.Converge()
		k.Stop() // as in the runbook
		c.Restore(backup)
		c.Tap(func(m rig.Message) bool { return m.ToAgent.GetHello() == nil })
		c.StartCoordinator("c2")
		began := time.Now()
		for _, node := range []resource.NodeID{"n1", "n2"} {
			c.Eventually(string(node)+" says so in its heartbeats", func() bool {
				kv, found, _, err := c.Store.Get(t.Context(), record.NodeStatusKey(node))
				return err == nil && found && strings.Contains(string(kv.Value), "reconcile")
			})
		}
		if took := time.Since(began); took > 75*time.Second { // a backoff, the spread, the next heartbeat after a minute
			t.Errorf("the last agent noticed after %v", took)
		}
		c.Tap(nil)
		c.Eventually("the agents are connected", func() bool {
			n, err := c.Leader().ListNodes(t.Context())
			return err == nil && len(n.Items) == 2 && n.Items[0].Status.Phase == "Quarantined" && n.Items[1].Status.Phase == "Quarantined"
		})
		for _, node := range []resource.NodeID{"n1", "n2"} {
			reconcile(t, c, node, api.ReconcileAdopt)
		}
		c.AwaitReady(2)
		c.Converge()
		if n := grants(c); n != 2 {
			t.Errorf("%d grants, want 2", n)
		}
	})
}

// TestALeaderThatAgentsHaveOutlivedIsElectedAnew: the store went back behind
// the epoch that an agent has seen, and grew beyond every revision that the
// agent has seen before it looked. No agent is in quarantine, and none lets the
// leader in.
func TestALeaderThatAgentsHaveOutlivedIsElectedAnew(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		pass(15 * time.Second) // the agents have registered because of the election
		backup := c.Store.Backup()
		age(t, c)
		k.Stop()
		k = c.StartCoordinator("c2")
		c.AwaitReady(2)
		allocate(t, k, rig.Submission{Name: "lost", GPUs: 8, Wait: time.Minute})
		c.Converge()
		before, _, err := storetest.CurrentLeader(t.Context(), c.Store)
		if err != nil {
			t.Fatal(err)
		}
		remove(t, k, "lost")
		c.Converge()
		k.Stop()
		c.Restore(backup)
		c.StartCoordinator("c3")
		c.StartCoordinator("c4")
		synctest.Wait() // both are candidates
		for range 4 {
			age(t, c)
		}
		c.AwaitReady(2)
		after, found, err := storetest.CurrentLeader(t.Context(), c.Store)
		if err != nil || !found || after.Epoch <= before.Epoch {
			t.Errorf("led in epoch %d after %d, %v", after.Epoch, before.Epoch, err)
		}
		for _, node := range []string{"n1", "n2"} {
			if n, err := c.Leader().GetNode(t.Context(), node); err != nil || n.Status.Phase != "Ready" {
				t.Errorf("%s: %+v, %v: this test shows nothing", node, n, err)
			}
		}
		allocate(t, c.Leader(), rig.Submission{Name: "new", GPUs: 8, Wait: time.Minute})
		c.Converge()
	})
}

// TestAnAgentIsToldOnlyOnceItsRecordsAreEnded: else it finds ended transactions
// COMMITTED when it registers, and starts them again.
func TestAnAgentIsToldOnlyOnceItsRecordsAreEnded(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		tx := allocate(t, k, rig.Submission{Name: "back", GPUs: 8, Wait: time.Minute}).Status.Transaction
		c.Converge()
		backup := c.Store.Backup()
		age(t, c)
		remove(t, k, "back")
		c.Converge()
		k.Stop()
		c.StartCoordinator("c2") // whose epoch reaches the agent
		c.AwaitReady(1)
		goBack(t, c, backup)
		c.Leader().Gate.OnTxn(func(x record.Txn) rig.Fault {
			if rig.Writes(x, grant.RecordReleasing) {
				pass(5 * time.Second)
			}
			return rig.None
		})
		told := 0
		c.Tap(func(m rig.Message) bool {
			if m.ToAgent.GetReconcile() != nil {
				told++
				if r := c.Records()[tx]; r.State != grant.RecordReleasing {
					t.Errorf("the agent is told while the record is %s", r.State)
				}
			}
			return true
		})
		reconcile(t, c, "n1", api.ReconcileAdopt)
		c.Leader().Gate.OnTxn(nil)
		c.AwaitReady(1)
		phase(t, c, "back", "")
		c.Converge()
		if n := grants(c); n != 0 || told != 1 {
			t.Errorf("%d grants are left, and the agent was told %d times", n, told)
		}
	})
}

// TestATombstoneInQuarantineEndsNothing: it may be of a transaction that the
// restored store does not know, though it has the same name.
func TestATombstoneInQuarantineEndsNothing(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		pass(15 * time.Second) // the agent has registered because of the election, and keeps its tombstones now
		var once sync.Once
		var backup mem.Backup
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if rig.Writes(x, grant.RecordReleased) {
				once.Do(func() { backup = c.Store.Backup() })
			}
			return rig.None
		})
		c.Tap(func(m rig.Message) bool {
			return m.ToAgent.GetForget() == nil && (m.Coordinator == "c1" || m.ToAgent.GetHello() == nil)
		})
		tx := allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: time.Minute}).Status.Transaction
		remove(t, k, "a")
		phase(t, c, "a", "")
		age(t, c)
		allocate(t, k, rig.Submission{Name: "lost", GPUs: 8, Wait: time.Minute})
		c.Eventually("the agent has heard of it", func() bool {
			s, _ := c.Agent("n1").Snapshot()
			return slices.ContainsFunc(s.Grants, func(g rpc.GrantMember) bool { return g.State == "HELD" })
		})
		k.Stop()
		c.Restore(backup)
		next := c.StartCoordinator("c2")
		c.Eventually("the agent is in quarantine", func() bool {
			kv, found, _, err := c.Store.Get(t.Context(), record.NodeStatusKey("n1"))
			return err == nil && found && strings.Contains(string(kv.Value), "reconcile")
		})
		c.Tap(func(m rig.Message) bool { return m.ToAgent.GetForget() == nil })
		c.Eventually("the leader knows", func() bool {
			n, err := next.GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Quarantined"
		})
		pass(time.Minute)
		if r := c.Records()[tx]; r.State != grant.RecordReleasing {
			t.Errorf("the record is %s because of what an agent in quarantine says, want RELEASING", r.State)
		}
		c.Tap(nil)
		reconcile(t, c, "n1", api.ReconcileRelease)
		c.AwaitReady(1)
		c.Converge()
		if n := grants(c); n != 0 {
			t.Errorf("%d grants are left", n)
		}
	})
}
