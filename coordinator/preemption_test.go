package coordinator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/test/rig"
)

// pushing is a submission that has others evicted.
func pushing(name string, gpus int, priority int32) rig.Submission {
	return rig.Submission{Name: name, GPUs: gpus, Priority: priority, Policy: "PreemptLowerPriority"}
}

// notices counts the records that are, or were, EVICTING.
func evicted(c *rig.Cluster) int {
	n := 0
	for _, r := range c.Records() {
		if r.Evicted {
			n++
		}
	}
	return n
}

func TestAUnitTakesThePlaceOfLowerPriority(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "old", GPUs: 4, Priority: 1})
		allocate(t, k, rig.Submission{Name: "new", GPUs: 4, Priority: 1})
		start := time.Now()
		urgent := allocate(t, k, pushing("urgent", 2, 9))
		if urgent.Status.Phase != api.Pending {
			t.Errorf("urgent is %s at once", urgent.Status.Phase)
		}
		if leaving := phase(t, c, "new", api.Terminating); leaving.Status.Message != "gives way to default/alloc/urgent/0" {
			t.Errorf("new says %q", leaving.Status.Message)
		}
		synctest.Wait() // the leader has the answer of the write, too
		e, err := k.ExplainAllocation(t.Context(), rig.Namespace, "urgent", service.ExplainOptions{Operator: true})
		if err != nil || e.Nomination == nil || len(e.Nomination.Victims) != 1 || e.Nomination.Victims[0].Unit != "default/alloc/new/0" ||
			!strings.Contains(e.Summary, "it takes the place of default/alloc/new/0, noticed at ") {
			t.Errorf("%v, %+v", err, e)
		}
		ran := phase(t, c, "urgent", api.Running)
		if waited := time.Since(start); waited > 35*time.Second {
			t.Errorf("urgent runs after %v", waited)
		}
		if gone := phase(t, c, "new", api.Preempted); gone.Status.Message != "gives way to default/alloc/urgent/0" {
			t.Errorf("new says %q", gone.Status.Message)
		}
		phase(t, c, "old", api.Running)
		records := c.Records()
		for tx, r := range records {
			if r.Unit.Name == "new" && (r.State != grant.RecordReleased || r.By != ran.Status.Transaction) {
				t.Errorf("%s is %+v, want RELEASED by %s", tx, r, ran.Status.Transaction)
			}
		}
		c.Converge()
		remove(t, k, "new") // it was kept to be seen
		phase(t, c, "new", "")
		allocate(t, k, rig.Submission{Name: "new", GPUs: 2})
		phase(t, c, "new", api.Running)
		c.Converge()
	})
}

// TestAVictimDoesNotLearnTheNameOfAnotherTenantsWork: the text is stored, and everybody
// who may read the victim reads the text.
func TestAVictimDoesNotLearnTheNameOfAnotherTenantsWork(t *testing.T) {
	for name, test := range map[string]struct{ namespace, want string }{
		"of the same tenant": {rig.Namespace, "gives way to default/alloc/secret/0"},
		"of another tenant":  {"rival", "gives way to 1 unit of another tenant with 8 GPUs at priority 9"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(1)
				allocate(t, k, rig.Submission{Name: "old", GPUs: 8, Priority: 1})
				secret := pushing("secret", 8, 9)
				secret.Namespace = test.namespace
				allocate(t, k, secret)
				for _, p := range []api.Phase{api.Terminating, api.Preempted} {
					if got := phase(t, c, "old", p).Status.Message; got != test.want {
						t.Errorf("%s: the victim says %q, want %q", p, got, test.want)
					}
				}
				for tx, r := range c.Records() {
					if strings.Contains(r.Reason, "rival/") {
						t.Errorf("the record of %s has the reason %q", tx, r.Reason)
					}
				}
			})
		})
	}
}

func TestNobodyIsEvictedForAUnitThatDoesNotAsk(t *testing.T) {
	for name, s := range map[string]rig.Submission{
		"own quota":          {Name: "urgent", GPUs: 8, Priority: 9, Policy: "OwnQuota"},
		"never":              {Name: "urgent", GPUs: 8, Priority: 9, Policy: "Never"},
		"equal priority":     pushing("urgent", 8, 5),
		"no place even then": pushing("urgent", 16, 9),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(1)
				allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Priority: 5})
				s.Wait = time.Minute
				if got := allocate(t, k, s); got.Status.Phase != api.Pending {
					t.Errorf("urgent is %s", got.Status.Phase)
				}
				phase(t, c, "a", api.Running)
				if evicted(c) != 0 {
					t.Error("somebody was evicted")
				}
				c.Converge()
			})
		})
	}
}

func TestAGangGivesWayWholeAndWaitsAgain(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(3)
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 3, Gang: 2, Wait: time.Minute})
		phase(t, c, "j-2", api.Running)
		before, err := k.GetJob(t.Context(), rig.Namespace, "j", 0)
		if err != nil || before.Status.Active != 3 {
			t.Fatalf("%v, %+v", err, before)
		}
		submit(t, k, rig.Submission{Name: "p", GPUs: 8, Members: 2, Gang: 2, Priority: 9, Policy: "PreemptLowerPriority"})
		phase(t, c, "p-1", api.Running)
		c.Eventually("all of j waits", func() bool {
			j, err := k.GetJob(t.Context(), rig.Namespace, "j", 0)
			return err == nil && j.Status.Phase == api.Queued && j.Status.Active == 0
		})
		c.Converge()
		if err := deleteJob(t, k, "p"); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			phase(t, c, fmt.Sprint("j-", i), api.Running)
		}
		c.Converge()
	})
}

// turn is a preemption from its beginning to its victims' return. With any
// fault on the way, it ends the same.
func turn(t *testing.T, c *rig.Cluster) {
	t.Helper()
	again(t, c, "create x", func(k *rig.Coordinator) error {
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "x", GPUs: 2, Priority: 1, RequestID: "rx"})
		return err
	})
	again(t, c, "create j", func(k *rig.Coordinator) error {
		_, _, err := k.Job(t.Context(), rig.Submission{Name: "j", GPUs: 6, Members: 2, Gang: 2, Priority: 2, RequestID: "rj"})
		return err
	})
	phase(t, c, "x", api.Running)
	phase(t, c, "j-1", api.Running)
	again(t, c, "create p", func(k *rig.Coordinator) error {
		_, _, err := k.Job(t.Context(), rig.Submission{Name: "p", GPUs: 8, Members: 2, Gang: 2, Priority: 9, Policy: "PreemptLowerPriority", RequestID: "rp"})
		return err
	})
	phase(t, c, "p-0", api.Running)
	phase(t, c, "p-1", api.Running)
	phase(t, c, "x", api.Preempted)
	phase(t, c, "j-0", api.Pending)
	c.Converge()
	again(t, c, "delete p", func(k *rig.Coordinator) error { return deleteJob(t, k, "p") })
	phase(t, c, "j-1", api.Running)
	again(t, c, "delete x", func(k *rig.Coordinator) error {
		_, err := k.DeleteAllocation(t.Context(), rig.Namespace, "x", api.DeleteOptions{})
		return err
	})
	phase(t, c, "x", "")
	again(t, c, "delete j", func(k *rig.Coordinator) error { return deleteJob(t, k, "j") })
	phase(t, c, "j-0", "")
	c.Converge()
}

// steps are the writes of a preemption.
var steps = map[string]func(record.Txn) bool{
	"eviction": func(x record.Txn) bool { return rig.Writes(x, grant.RecordEvicting) },
	"swap": func(x record.Txn) bool {
		return rig.Writes(x, grant.RecordCommitted) && rig.Writes(x, grant.RecordReleased)
	},
}

func TestAPreemptionEndsWhateverBecomesOfItsWrites(t *testing.T) {
	for name, fits := range steps {
		for fault, how := range map[rig.Fault]string{
			rig.Lost: "lost", rig.Late: "late", rig.AnswerLost: "unanswered", rig.CrashBefore: "crash before", rig.CrashAfter: "crash after",
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					k := c.Bring(2)
					choose, hit := rig.Once(fault, fits)
					k.Gate.OnTxn(choose)
					over := make(chan struct{})
					var next sync.WaitGroup
					next.Go(func() {
						select {
						case <-k.Ended():
							c.StartCoordinator("c2")
						case <-over:
						}
					})
					turn(t, c)
					close(over)
					next.Wait()
					select {
					case <-hit:
					default:
						t.Error("no such write was sent")
					}
				})
			})
		}
	}
}

func TestAVictimThatItsOwnerDeletesIsGone(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "v", GPUs: 8, Priority: 1})
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 1, Priority: 2})
		allocate(t, k, pushing("p", 8, 9))
		phase(t, c, "v", api.Terminating)
		remove(t, k, "v")
		phase(t, c, "v", "")
		phase(t, c, "p", api.Running)
		c.Converge()
	})
}

func TestAPreemptorThatIsDeletedLeavesItsVictimsToEnd(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		submit(t, k, rig.Submission{Name: "v", GPUs: 8, Members: 1, Priority: 1})
		phase(t, c, "v-0", api.Running)
		allocate(t, k, pushing("p", 8, 9))
		phase(t, c, "v-0", api.Terminating)
		remove(t, k, "p")
		phase(t, c, "p", "")
		phase(t, c, "v-0", api.Running) // a job waits again, and runs again
		c.Converge()
	})
}

func TestAClaimNeedsNoPolicyButMayBeForgone(t *testing.T) {
	for policy, evicts := range map[string]bool{"": true, "PreemptLowerPriority": true, "Never": false} {
		for _, admission := range []string{"queue", "reject"} {
			t.Run(policy+" "+admission, func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					k := laboratory(t, c, 2, admission)
					allocate(t, k, rig.Submission{Namespace: "a", Name: "home", GPUs: 8})
					submit(t, k, rig.Submission{Namespace: "a", Name: "guest", GPUs: 8, Members: 1})
					c.Eventually("the guest runs", func() bool {
						a, err := k.GetAllocation(t.Context(), "a", "guest-0", 0)
						return err == nil && a.Status.Phase == api.Running
					})
					mine := allocate(t, k, rig.Submission{Namespace: "b", Name: "mine", GPUs: 4, Policy: policy, Wait: time.Minute})
					if (mine.Status.Phase == api.Running) != evicts {
						t.Errorf("mine is %+v", mine.Status)
					}
					c.Converge()
				})
			})
		}
	}
}

func TestAnOperatorEvicts(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 2})
		submit(t, k, rig.Submission{Name: "j", GPUs: 2, Members: 2})
		phase(t, c, "j-1", api.Running)
		grace := int64(7)
		start := time.Now()
		tx, revision, err := k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "a", GraceSeconds: &grace, Reason: "an incident"})
		if err != nil || revision == 0 {
			t.Fatalf("evict a: %v", err)
		}
		if r := c.Records()[tx]; r.State != grant.RecordEvicting || r.GraceSeconds != 7 || r.Reason != "an incident" || !r.Evicted {
			t.Errorf("%+v", r)
		}
		again, _, err := k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "a"})
		if err != nil || again != tx {
			t.Errorf("once more: %s, %v", again, err)
		}
		gone := phase(t, c, "a", api.Preempted)
		if waited := time.Since(start); waited < 7*time.Second || waited > 10*time.Second || gone.Status.Message != "an incident" {
			t.Errorf("Preempted after %v: %+v", waited, gone.Status)
		}
		_, _, err = k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "a"})
		refused(t, err, 409, "default/alloc/a/0 is Preempted")
		_, _, err = k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "nobody"})
		refused(t, err, 404, "nobody")
		_, _, err = k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "j-0", Node: "n9"})
		refused(t, err, 404, "default/job/j/0 has no member on node n9")
		before, err := k.GetAllocation(t.Context(), rig.Namespace, "j-0", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = k.Evict(t.Context(), lead.EvictOptions{Tx: before.Status.Transaction, Node: "n1"}); err != nil {
			t.Errorf("evict j-0: %v", err)
		}
		c.Eventually("j-0 runs again", func() bool {
			a, err := k.GetAllocation(t.Context(), rig.Namespace, "j-0", 0)
			return err == nil && a.Status.Phase == api.Running && a.Status.Transaction != before.Status.Transaction
		})
		c.Converge()
	})
}

// TestADeletionOfWhatIsEvictedEndsIt: it reports success, too, where its own
// end lands while the leader looks whether there is anything left to delete.
func TestADeletionOfWhatIsEvictedEndsIt(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: time.Minute})
		c.OnStep(func(s rig.Step) error {
			if s.Name == "txn enqueue" && !s.After {
				pass(3 * time.Second)
			}
			return nil
		})
		grace := int64(1)
		if _, _, err := k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "a", GraceSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		go k.Allocate(t.Context(), rig.Submission{Name: "b", GPUs: 8}) // a write that is under way
		pass(100 * time.Millisecond)
		a, err := k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{})
		if err != nil || a.Status.Phase != api.Terminating {
			t.Errorf("%v, %+v", err, a)
		}
		phase(t, c, "a", "")
		phase(t, c, "b", api.Running)
		_, err = k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{})
		refused(t, err, 404, "not found")
		c.Converge()
	})
}

func TestNobodyIsEvictedForALostPromise(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "v", GPUs: 8, Priority: 1})
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if steps["eviction"](x) {
				once.Do(func() { // between Waiting and the eviction the host restarts
					before := c.Agent("n1").Incarnation()
					c.Agent("n1").Reboot()
					c.Eventually("the new incarnation has registered", func() bool {
						kv, _, _, err := c.Store.Get(t.Context(), record.NodeIdentityKey("n1"))
						if err != nil {
							return false
						}
						i, err := record.Decode[record.NodeIdentity](kv.Key, kv.Value)
						return err == nil && i.Incarnation != before
					})
				})
			}
			return rig.None
		})
		allocate(t, k, pushing("p", 8, 9))
		p := phase(t, c, "p", api.Running)
		if c.Aborted() != 1 {
			t.Errorf("%d attempts were given up, want the first", c.Aborted())
		}
		for tx, r := range c.Records() {
			if r.Unit.Name == "v" && r.By != p.Status.Transaction {
				t.Errorf("%s is %+v: it left for a preemptor that had lost its place", tx, r)
			}
		}
		c.Converge()
	})
}

func TestWhatAClaimTakesIsNotGivenAway(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		plant(t, k, "Lab", "all nil 12", "a all 6", "b all 6")
		for _, group := range []string{"a", "b"} {
			bind(t, k, group, "queue", "Lab/"+group)
		}
		allocate(t, k, rig.Submission{Namespace: "a", Name: "home", GPUs: 6})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "guest", GPUs: 4})
		allocate(t, k, rig.Submission{Namespace: "b", Name: "mine", GPUs: 6})
		c.Eventually("the guest is told to leave", func() bool {
			a, err := k.GetAllocation(t.Context(), "a", "guest", 0)
			return err == nil && a.Status.Phase == api.Terminating
		})
		// 2 are free now, of the GPUs that the claim needs.
		other := allocate(t, k, rig.Submission{Namespace: "a", Name: "other", GPUs: 2, Wait: time.Minute})
		if other.Status.Phase != api.Pending {
			t.Errorf("other is %s", other.Status.Phase)
		}
		running(t, c, "b", "mine")
		if c.Aborted() != 0 {
			t.Errorf("%d attempts were given up", c.Aborted())
		}
		wantSeat(t, c, "b", "mine", "b")
		c.Converge()
	})
}

// TestAnEvictionSeesWhatOthersWereShown: a unit that a follower shows as
// Running can be evicted, and its node is not empty, though the leader does not
// know yet that its commit has landed.
func TestAnEvictionSeesWhatOthersWereShown(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
		c.OnStep(func(s rig.Step) error {
			if s.Name == "txn committed" && s.After {
				pass(500 * time.Millisecond)
			}
			return nil
		})
		go k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 8, Wait: time.Minute}) // its outcome is checked below
		pass(100 * time.Millisecond)
		if a, err := f.GetAllocation(t.Context(), rig.Namespace, "a", 0); err != nil || a.Status.Phase != api.Running {
			t.Fatalf("the follower shows %+v, %v", a, err)
		}
		if d, err := k.DrainNode(t.Context(), "n1", api.DrainOptions{}); err != nil || d.Status != "Draining" || d.AllocationsToEvict != 1 {
			t.Errorf("the node is %+v, %v", d, err)
		}
		grace := int64(1)
		if _, _, err := k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "a", GraceSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "a", api.Preempted)
		remove(t, k, "a")
		c.Converge()
	})
}
