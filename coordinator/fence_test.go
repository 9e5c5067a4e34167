package coordinator_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// beating makes leases of nodes follow their agents closely.
var beating = rig.Options{Heartbeat: 10 * time.Second}

// lose takes a host's power away and waits until its lease has expired.
func lose(t *testing.T, c *rig.Cluster, node resource.NodeID) {
	t.Helper()
	c.Agent(node).Crash()
	c.Eventually("the lease has expired", func() bool {
		n, err := c.Leader().GetNode(t.Context(), string(node))
		return err == nil && ready(n).Reason == "LeaseExpired"
	})
}

func ready(n *api.Node) api.Condition {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c
		}
	}
	return api.Condition{}
}

// fence fences a node, which must succeed with the leader of the moment.
func fence(t *testing.T, c *rig.Cluster, node resource.NodeID, o api.FenceOptions) {
	t.Helper()
	n, err := c.Leader().FenceNode(t.Context(), string(node), o)
	if err != nil || n.Status.Phase != "Fenced" {
		t.Fatalf("fence %s: %v, %+v", node, err, n)
	}
}

// allocateOn submits an allocation and returns where it runs.
func allocateOn(t *testing.T, c *rig.Cluster, s rig.Submission) resource.NodeID {
	t.Helper()
	allocate(t, c.Leader(), s)
	return phase(t, c, s.Name, api.Running).Status.NodeID
}

func TestANodeThatIsHeardIsNotFencedWithoutForce(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		c.Eventually("the node has its lease", func() bool {
			_, found, _, err := c.Store.Get(t.Context(), record.NodeLeaseKey("n1"))
			return err == nil && found
		})
		_, err := k.FenceNode(t.Context(), "n1", api.FenceOptions{ConfirmDead: true})
		refused(t, err, 409, "node n1 is alive: coordinator c1 hears its agent")
		_, err = k.FenceNode(t.Context(), "nowhere", api.FenceOptions{})
		refused(t, err, 404, "node nowhere not found")
		registrations := func() int {
			n, err := k.GetNode(t.Context(), "n1")
			if err != nil {
				t.Fatal(err)
			}
			return len(n.Status.Registrations)
		}
		before := registrations()
		if _, err = k.FenceNode(t.Context(), "n1", api.FenceOptions{Force: true, Reason: "a drill"}); err != nil {
			t.Fatal(err)
		}
		c.Eventually("the agent registers again by itself", func() bool { return registrations() > before })
		phase(t, c, "a", api.Running)
		c.AwaitReady(1)
		c.Converge()
		remove(t, k, "a")
		c.Converge()
	})
}

// TestANodeIsHeardFromItsFirstSessionOn: its lease comes with a heartbeat later.
func TestANodeIsHeardFromItsFirstSessionOn(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		_, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(record.NodeLeaseKey("n1"))}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.FenceNode(t.Context(), "n1", api.FenceOptions{ConfirmDead: true})
		refused(t, err, 409, "node n1 is alive: coordinator c1 hears its agent")
	})
}

func TestNothingIsReleasedByAFenceAlone(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		at := allocateOn(t, c, rig.Submission{Name: "a", GPUs: 8})
		lose(t, c, at)
		fence(t, c, at, api.FenceOptions{Reason: "no answer"})
		fence(t, c, at, api.FenceOptions{}) // it may be repeated
		time.Sleep(2 * time.Minute)
		phase(t, c, "a", api.Running)
		k.Stop()
		k = c.StartCoordinator("c2")
		c.Eventually("the next leader knows of the fence", func() bool {
			n, err := c.Leader().GetNode(t.Context(), string(at))
			return err == nil && n.Status.Phase == "Fenced" && strings.Contains(ready(n).Message, "no answer")
		})
		phase(t, c, "a", api.Running)
		c.Agent(at).Start()
		c.AwaitReady(2)
		c.Converge()
		remove(t, k, "a")
		c.Converge()
	})
}

func TestWhatRanOnADeadNodeEndsAsLost(t *testing.T) {
	const brief = 40 * time.Second // of terminal records
	back := map[string]func(*rig.Agent){
		"its machine was off":                             (*rig.Agent).Reboot,
		"its power was gone":                              (*rig.Agent).PowerCycle,
		"its disk is new":                                 (*rig.Agent).Replace,
		"it was not dead, only cut off":                   (*rig.Agent).Start,
		"it comes back when records of its time are gone": func(a *rig.Agent) { time.Sleep(2 * brief); a.Start() },
	}
	for name, comes := range back {
		t.Run(name, func(t *testing.T) {
			o := beating
			o.Configure = func(c *coordinator.Config) { c.RecordRetention = brief }
			bubble(t, o, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(3)
				submit(t, k, rig.Submission{Name: "gang", GPUs: 6, Members: 2, Gang: 2, Wait: time.Minute})
				at := phase(t, c, "gang-0", api.Running).Status.NodeID
				var alone string
				for _, name := range []string{"a", "b", "d"} { // 2 GPUs are left on two nodes, 8 on the third
					if allocateOn(t, c, rig.Submission{Name: name, GPUs: 2}) == at {
						alone = name
					}
				}
				if alone == "" {
					t.Fatal("no allocation beside the gang's member")
				}
				lose(t, c, at)
				began := time.Now()
				fence(t, c, at, api.FenceOptions{ConfirmDead: true, Reason: "burnt"})
				lost := phase(t, c, alone, api.Failed)
				if !strings.HasPrefix(lost.Status.Message, "NodeLost: ") || !strings.Contains(lost.Status.Message, "burnt") || time.Since(began) > time.Second {
					t.Errorf("after %v %s says %q", time.Since(began), alone, lost.Status.Message)
				}
				phase(t, c, "gang-0", api.Running) // elsewhere, after its grace
				if n := phase(t, c, "gang-0", api.Running).Status.NodeID; n == at {
					t.Errorf("gang-0 is on the dead node %s", n)
				}
				handedOut := watchReserves(c, at)
				comes(c.Agent(at))
				c.AwaitReady(3)
				c.Converge()
				handedOut.none(t)
				allocate(t, k, rig.Submission{Name: "z", GPUs: 1, Wait: time.Minute})
				c.Converge()
				time.Sleep(2 * brief) // every node has registered: the records go
				for tx, r := range c.Records() {
					if len(r.Unheard) > 0 {
						t.Errorf("%s still waits for %v", tx, r.Unheard)
					}
				}
			})
		})
	}
}

// reserves records the agents' promises made while they still hold a
// transaction that the store has released.
type reserves struct {
	mu    sync.Mutex
	early []string
}

func watchReserves(c *rig.Cluster, node resource.NodeID) *reserves {
	r := &reserves{}
	registered := false
	c.Tap(func(m rig.Message) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if m.Node != node {
			return true
		}
		if m.FromAgent.GetRegistered() != nil {
			registered = true
		}
		if reply := m.FromAgent.GetReply(); reply.GetState() == musterv1.Reply_RESERVED && !registered {
			r.early = append(r.early, reply.GetTx())
		}
		return true
	})
	return r
}

func (r *reserves) none(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.early) > 0 {
		t.Errorf("promised before it had registered: %v", r.early)
	}
}

func TestAConfirmedDeathSurvivesTheLeader(t *testing.T) {
	is := func(state grant.RecordState) func(record.Txn) bool {
		return func(x record.Txn) bool {
			for _, op := range x.Then {
				if r, err := record.Decode[record.Tx](op.Key, op.Value); strings.HasPrefix(op.Key, record.TxPrefix) && !op.Delete && err == nil && r.State == state {
					return true
				}
			}
			return false
		}
	}
	writes := map[string]func(record.Txn) bool{
		"the fence": func(x record.Txn) bool {
			for _, op := range x.Then {
				if i, err := record.Decode[record.NodeIdentity](op.Key, op.Value); op.Key == record.NodeIdentityKey("n1") && err == nil && i.ConfirmedDead {
					return true
				}
			}
			return false
		},
		"EVICTING": is(grant.RecordEvicting), "RELEASING": is(grant.RecordReleasing), "RELEASED": is(grant.RecordReleased),
	}
	for name, fits := range writes {
		for fault, when := range map[rig.Fault]string{rig.CrashBefore: "before", rig.CrashAfter: "after", rig.Lost: "no answer to"} {
			t.Run(when+" "+name, func(t *testing.T) {
				bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
					k := c.Bring(1)
					allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
					submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 1, Gang: 1})
					lose(t, c, "n1")
					choose, hit := rig.Once(fault, fits)
					k.Gate.OnTxn(choose)
					var next *sync.WaitGroup
					if fault != rig.Lost {
						next = succeed(c, k, "c2")
					}
					for range 100 { // asked again and again, as by an operator without an answer
						if _, err := c.Leader().FenceNode(t.Context(), "n1", api.FenceOptions{ConfirmDead: true}); err == nil {
							break
						}
						time.Sleep(time.Second)
					}
					a := phase(t, c, "a", api.Failed)
					if !strings.HasPrefix(a.Status.Message, "NodeLost") {
						t.Errorf("a says %q", a.Status.Message)
					}
					select {
					case <-hit:
					default:
						t.Error("no such write was sent")
					}
					if next != nil {
						next.Wait()
					}
					c.Agent("n1").Reboot()
					phase(t, c, "j-0", api.Running)
					c.Converge()
				})
			})
		}
	}
}

// TestADeadNodeThatComesBackIsAsked: its return lands between the word of its
// death and the end of a gang, whose other member still has its grace.
func TestADeadNodeThatComesBackIsAsked(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "gang", GPUs: 8, Members: 2, Gang: 2, Wait: time.Minute})
		c.Agent("n2").Stop() // does not free its part for now
		lose(t, c, "n1")
		fence(t, c, "n1", api.FenceOptions{ConfirmDead: true})
		phase(t, c, "gang-0", api.Terminating)
		c.Agent("n1").Start() // it was alive
		c.Eventually("n1 is back", func() bool {
			n, err := k.GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Ready"
		})
		for tx, r := range c.Records() {
			if r.State == grant.RecordReleased {
				t.Errorf("%s is RELEASED and n2 has not freed it", tx)
			}
		}
		c.Agent("n2").Start()
		phase(t, c, "gang-1", api.Running)
		c.Converge()
		for tx, r := range c.Records() {
			if len(r.Unheard) > 0 {
				t.Errorf("%s ended without the word of %v, which was back", tx, r.Unheard)
			}
		}
	})
}

// TestADeathThatIsOverEndsNothing: the node registers between the decision and
// its Txn to RELEASED.
func TestADeathThatIsOverEndsNothing(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		lose(t, c, "n1")
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["released"](x) {
				once.Do(func() {
					fenced, _, _, err := c.Store.Get(t.Context(), record.NodeIdentityKey("n1"))
					if err != nil {
						t.Error(err)
					}
					c.Agent("n1").Start()
					c.Eventually("n1 has registered", func() bool {
						now, _, _, err := c.Store.Get(t.Context(), fenced.Key)
						return err == nil && now.ModRev > fenced.ModRev
					})
				})
			}
			return rig.None
		})
		fence(t, c, "n1", api.FenceOptions{ConfirmDead: true})
		phase(t, c, "a", api.Failed)
		c.Converge()
		for tx, r := range c.Records() {
			if len(r.Unheard) > 0 {
				t.Errorf("%s ended without the word of n1, which was back", tx)
			}
		}
	})
}

func TestAnUndecidedUnitDoesNotCountOnAFencedNode(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["commit"](x) {
				once.Do(func() { fence(t, c, "n1", api.FenceOptions{Force: true}) }) // between Yes and commit
			}
			return rig.None
		})
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		phase(t, c, "a", api.Running)
		if c.Aborted() != 1 {
			t.Errorf("%d records ABORTED, want 1", c.Aborted())
		}
		c.Converge()
	})
}

func TestADeathIsConfirmedOfWhoWasRegisteredThen(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		lose(t, c, "n1")
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if len(x.If) > 0 && x.If[len(x.If)-1].Key == record.NodeLeaseKey("n1") {
				once.Do(func() { // between the read and the fence
					before, _, _, err := c.Store.Get(t.Context(), record.NodeIdentityKey("n1"))
					if err != nil {
						t.Error(err)
					}
					c.Agent("n1").PowerCycle()
					c.Eventually("n1 has registered", func() bool {
						now, _, _, err := c.Store.Get(t.Context(), before.Key)
						return err == nil && now.ModRev > before.ModRev
					})
				})
			}
			return rig.None
		})
		_, err := k.FenceNode(t.Context(), "n1", api.FenceOptions{ConfirmDead: true, Force: true})
		refused(t, err, 409, "it is back, and nothing was ended")
		phase(t, c, "a", api.Running)
		c.Converge()
	})
}
