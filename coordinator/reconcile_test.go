package coordinator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// age lets the store grow by writes that do not matter, so that the later ones
// are far beyond a backup.
func age(t *testing.T, c *rig.Cluster) {
	t.Helper()
	for i := range 50 {
		if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put("/else", fmt.Append(nil, i))}}); err != nil {
			t.Fatal(err)
		}
	}
}

// goBack restores a backup under the running cluster and waits until the agents
// of the nodes, or of all where none is named, are in quarantine. From then on a
// command to them that follows from a record fails the test, until the node is
// reconciled.
func goBack(t *testing.T, c *rig.Cluster, b mem.Backup, nodes ...resource.NodeID) {
	t.Helper()
	c.Restore(b)
	began := time.Now()
	if len(nodes) == 0 {
		for _, a := range c.Agents() {
			nodes = append(nodes, a.Node)
		}
	}
	for _, node := range nodes {
		c.Eventually(string(node)+" is in quarantine", func() bool {
			n, err := c.Leader().GetNode(t.Context(), string(node))
			return err == nil && n.Status.Phase == "Quarantined" && ready(n).Status == "False" && strings.Contains(ready(n).Message, "muster reconcile") &&
				n.Status.Conditions[1].Type == "Quarantined" && n.Status.Conditions[1].Status == "True"
		})
	}
	if took := time.Since(began); took > 20*time.Second { // an election, and the time over which agents register then
		t.Errorf("the last agent noticed after %v", took)
	}
	var mu sync.Mutex
	reconciled := map[resource.NodeID]bool{}
	c.Tap(func(m rig.Message) bool {
		mu.Lock()
		defer mu.Unlock()
		to := m.ToAgent
		reconciled[m.Node] = reconciled[m.Node] || to.GetReconcile() != nil
		if to == nil || !slices.Contains(nodes, m.Node) || reconciled[m.Node] || to.GetHello() != nil || to.GetResync() != nil || to.GetCordon() != nil {
			return true
		}
		t.Errorf("%s is in quarantine and is sent %v", m.Node, to)
		return true
	})
}

// reconcile ends a node's quarantine, which must succeed. Agents that have
// noticed nothing register, too, after an election.
func reconcile(t *testing.T, c *rig.Cluster, node resource.NodeID, mode string) *api.Reconciliation {
	t.Helper()
	r, err := c.Leader().ReconcileNode(t.Context(), string(node), api.ReconcileOptions{Mode: mode, GracePeriodSeconds: new(int64)})
	if err != nil {
		t.Fatalf("reconcile %s: %v", node, err)
	}
	return r
}

// lossy is a cluster of three nodes whose store has lost allocation lost and
// gang j, and has allocation back again, which was deleted. It returns the
// gang's devices.
func lossy(t *testing.T, c *rig.Cluster) string {
	t.Helper()
	k := c.Bring(3)
	allocate(t, k, rig.Submission{Name: "kept", GPUs: 2, Wait: time.Minute})
	allocate(t, k, rig.Submission{Name: "back", GPUs: 2, Wait: time.Minute})
	c.Converge()
	backup := c.Store.Backup()
	age(t, c)
	remove(t, k, "back")
	allocate(t, k, rig.Submission{Name: "lost", GPUs: 3, Wait: time.Minute})
	submit(t, k, rig.Submission{Name: "j", GPUs: 5, Members: 2, Gang: 2, Wait: time.Minute})
	c.Converge()
	has := devices(t, k)
	goBack(t, c, backup)
	return has
}

func TestWhatTheStoreLostIsAdopted(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		before := lossy(t, c)
		outcomes := map[string]int{}
		for _, n := range []resource.NodeID{"n1", "n2", "n3"} {
			r := reconcile(t, c, n, "")
			for _, g := range r.Grants {
				outcomes[g.Unit+" "+g.Record+" "+g.Adopt+" "+g.Release]++
			}
			for _, g := range r.Records {
				outcomes[g.Unit+" "+g.Record+" "+g.Outcome]++
			}
		}
		want := map[string]int{
			"default/alloc/kept/0 COMMITTED kept kept": 1, "default/alloc/lost/0 absent adopted stopped": 1,
			"default/job/j/0 absent adopted stopped": 2, "default/alloc/back/0 COMMITTED ended: StoreRestored": 1,
		}
		if fmt.Sprint(outcomes) != fmt.Sprint(want) {
			t.Errorf("seen %v, want %v", outcomes, want)
		}
		for _, n := range []resource.NodeID{"n1", "n2", "n3"} {
			reconcile(t, c, n, api.ReconcileAdopt)
		}
		c.AwaitReady(3)
		phase(t, c, "back", "")
		phase(t, c, "kept", api.Running)
		phase(t, c, "lost", api.Running)
		c.Converge()
		if after := devices(t, c.Leader()); after != before {
			t.Errorf("the gang had %s and has %s", before, after)
		}
		allocate(t, c.Leader(), rig.Submission{Name: "new", GPUs: 3, Wait: time.Minute})
		c.Leader().Stop()
		c.StartCoordinator("c2") // that reads the adopted records
		c.AwaitReady(3)
		c.Converge()
		remove(t, c.Leader(), "lost")
		if _, err := c.Leader().DeleteJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "lost", "")
		c.Converge()
	})
}

func TestWhatTheStoreLostIsReleased(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		lossy(t, c)
		for _, n := range []resource.NodeID{"n1", "n2", "n3"} {
			reconcile(t, c, n, api.ReconcileRelease)
		}
		c.AwaitReady(3)
		phase(t, c, "kept", api.Running)
		for _, name := range []string{"back", "lost", "j-0"} {
			phase(t, c, name, "")
		}
		c.Converge()
		if n := grants(c); n != 1 {
			t.Errorf("%d grants are left, want that of kept", n)
		}
	})
}

// TestAGangThatWasReleasedOnOneNodeIsNotAdoptedOnAnother: whichever node is
// first, also once the leader that decided it is gone.
func TestAGangThatWasReleasedOnOneNodeIsNotAdoptedOnAnother(t *testing.T) {
	for _, first := range []int{0, 1} {
		bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
			k := c.Bring(2)
			backup := c.Store.Backup()
			age(t, c)
			submit(t, k, rig.Submission{Name: "j", GPUs: 5, Members: 2, Gang: 2, Wait: time.Minute})
			c.Converge()
			goBack(t, c, backup)
			nodes := []resource.NodeID{"n1", "n2"}
			reconcile(t, c, nodes[first], api.ReconcileRelease)
			c.Leader().Crash()
			c.StartCoordinator("c2")
			c.Eventually("the other is still in quarantine", func() bool {
				n, err := c.Leader().GetNode(t.Context(), string(nodes[1-first]))
				return err == nil && n.Status.Phase == "Quarantined"
			})
			time.Sleep(time.Hour) // longer than records are kept
			r := reconcile(t, c, nodes[1-first], api.ReconcileAdopt)
			if len(r.Grants) != 1 || r.Grants[0].Record != "ABORTED" || r.Grants[0].Adopt != "stopped" {
				t.Errorf("%+v", r.Grants)
			}
			c.AwaitReady(2)
			c.Converge()
			if n := grants(c); n != 0 {
				t.Errorf("%d grants are left", n)
			}
		})
	}
}

func TestAUnitThatWaitsInTheBackupIsAdoptedAsItself(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: time.Minute})
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 8})
		backup := c.Store.Backup()
		age(t, c)
		remove(t, k, "a")
		phase(t, c, "b", api.Running)
		c.Converge()
		goBack(t, c, backup)
		reconcile(t, c, "n1", api.ReconcileAdopt)
		c.AwaitReady(1)
		phase(t, c, "a", "")
		if after := phase(t, c, "b", api.Running); after.Metadata.UID != b.Metadata.UID || after.Spec.Resources.Requests["cpu"] != "8" {
			t.Errorf("b is %+v", after)
		}
		c.Converge()
	})
}

func TestANameThatIsTakenIsNotTakenAway(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		lossy(t, c)
		allocate(t, c.Leader(), rig.Submission{Name: "lost", GPUs: 1})
		for _, n := range []resource.NodeID{"n1", "n2", "n3"} {
			reconcile(t, c, n, api.ReconcileAdopt)
		}
		c.AwaitReady(3)
		phase(t, c, "lost", api.Running)
		list, err := c.Leader().ListAllocations(t.Context(), rig.Namespace, service.Page[api.Allocation]{})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, a := range list.Items {
			if strings.HasPrefix(a.Metadata.Name, "adopted-") && a.Spec.Resources.Requests[resource.GPU] == "3" {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d allocations are adopted-… with 3 GPUs", found)
		}
		c.Converge()
	})
}

// TestAReconciliationThatIsCutOffIsRepeated: the leader dies with any Txn of it,
// landed or not, or has no answer.
func TestAReconciliationThatIsCutOffIsRepeated(t *testing.T) {
	for _, mode := range []string{api.ReconcileAdopt, api.ReconcileRelease} {
		for fault, name := range map[rig.Fault]string{
			rig.CrashBefore: "dies before", rig.CrashAfter: "dies after", rig.AnswerLost: "has no answer", rig.Lost: "is lost", rig.Late: "is late",
		} {
			for at := range 3 {
				t.Run(fmt.Sprintf("%s, Txn %d %s", mode, at, name), func(t *testing.T) {
					bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
						lossy(t, c)
						var sent atomic.Int32
						c.Leader().Gate.OnTxn(func(x record.Txn) rig.Fault {
							if !rig.Touches(x, record.TxPrefix) {
								return rig.None
							}
							if int(sent.Add(1))-1 == at {
								return fault
							}
							return rig.None
						})
						c.StartCoordinator("c2")
						for _, n := range []resource.NodeID{"n1", "n2", "n3"} {
							c.Eventually(string(n)+" is reconciled", func() bool {
								_, err := c.Leader().ReconcileNode(t.Context(), string(n), api.ReconcileOptions{Mode: mode})
								return err == nil
							})
						}
						c.AwaitReady(3)
						phase(t, c, "kept", api.Running)
						c.Converge()
						want := 1
						if mode == api.ReconcileAdopt {
							want = 4
						}
						if n := grants(c); n != want {
							t.Errorf("%d grants, want %d", n, want)
						}
					})
				})
			}
		}
	}
}

func TestReconcilingRefuses(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		_, err := k.ReconcileNode(t.Context(), "nowhere", api.ReconcileOptions{})
		refused(t, err, 404, "node nowhere not found")
		backup := c.Store.Backup()
		age(t, c)
		submit(t, k, rig.Submission{Name: "j", GPUs: 5, Members: 2, Gang: 2, Wait: time.Minute})
		c.Converge()
		goBack(t, c, backup)
		c.Agent("n2").Stop()
		c.Eventually("n2 is away", func() bool {
			n, err := c.Leader().GetNode(t.Context(), "n2")
			return err == nil && n.Status.Phase == "NotReady"
		})
		_, err = c.Leader().ReconcileNode(t.Context(), "n2", api.ReconcileOptions{})
		refused(t, err, 409, "node n2 is not connected")
		_, err = c.Leader().ReconcileNode(t.Context(), "n1", api.ReconcileOptions{Mode: api.ReconcileAdopt})
		refused(t, err, 409, "node n2 is not heard and may hold members of it")
		c.Agent("n2").Start()
		c.Eventually("n2 is back", func() bool {
			n, err := c.Leader().GetNode(t.Context(), "n2")
			return err == nil && n.Status.Phase == "Quarantined"
		})
		reconcile(t, c, "n1", api.ReconcileAdopt)
		reconcile(t, c, "n2", api.ReconcileAdopt)
		c.AwaitReady(2)
		c.Converge()
		if n := grants(c); n != 2 {
			t.Errorf("%d grants, want the gang's 2", n)
		}
	})
}

// TestWhatRunsIsAdoptedOverQuota: others have been given the quota meanwhile.
func TestWhatRunsIsAdoptedOverQuota(t *testing.T) {
	bubble(t, limited(8, true), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		backup := c.Store.Backup()
		age(t, c)
		at := allocate(t, k, rig.Submission{Name: "lost", GPUs: 6, Wait: time.Minute}).Status.NodeID
		c.Converge()
		other := map[resource.NodeID]resource.NodeID{"n1": "n2", "n2": "n1"}[at]
		goBack(t, c, backup, at) // the other does not know anything that is lost
		allocate(t, c.Leader(), rig.Submission{Name: "new", GPUs: 8, Wait: time.Minute})
		if a := phase(t, c, "new", api.Running); a.Status.NodeID != other {
			t.Errorf("new is on %s, which is in quarantine", a.Status.NodeID)
		}
		reconcile(t, c, at, api.ReconcileAdopt)
		c.AwaitReady(2)
		phase(t, c, "lost", api.Running)
		c.Converge()
		if b := allocate(t, c.Leader(), rig.Submission{Name: "b", GPUs: 1, Wait: 10 * time.Second}); b.Status.Phase != api.Pending {
			t.Errorf("b is %s over quota", b.Status.Phase)
		}
		c.Leader().Stop()
		c.StartCoordinator("c2")
		c.AwaitReady(2)
		c.Converge()
		remove(t, c.Leader(), "new")
		phase(t, c, "b", api.Running)
		c.Converge()
	})
}

// TestWhatAnAgentDoesNotSayWhileItRegistersIsNotGone: messages to it are slow,
// so that a second reconciliation asks an agent that the first one has just let
// out of quarantine.
func TestWhatAnAgentDoesNotSayWhileItRegistersIsNotGone(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "kept", GPUs: 2, Wait: time.Minute})
		c.Converge()
		backup := c.Store.Backup()
		age(t, c)
		allocate(t, k, rig.Submission{Name: "lost", GPUs: 2, Wait: time.Minute})
		c.Converge()
		goBack(t, c, backup)
		var once sync.Once
		c.OnStep(func(s rig.Step) error {
			if s.Name == "tell resync" && s.After {
				once.Do(func() { pass(15 * time.Second) })
			}
			return nil
		})
		for range 3 {
			_, err := c.Leader().ReconcileNode(t.Context(), "n1", api.ReconcileOptions{Mode: api.ReconcileRelease, GracePeriodSeconds: new(int64)})
			if err != nil {
				refused(t, err, 409, "n1")
			}
		}
		c.AwaitReady(1)
		phase(t, c, "kept", api.Running)
		c.Converge()
	})
}
