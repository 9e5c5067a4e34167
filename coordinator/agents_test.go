package coordinator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// no turns an agent's Yes into a No: the leader fences, the agent drops.
func no(r *musterv1.Reply) {
	r.State, r.Members = musterv1.Reply_NO, nil
	r.Reasons = []*musterv1.Reason{{Code: resource.ReasonInsufficient, Detail: "something local took it"}}
}

// refuseOnce turns the first Yes into a No.
func refuseOnce(c *rig.Cluster) {
	var once sync.Once
	c.Tap(func(m rig.Message) bool {
		if r := m.FromAgent.GetReply(); r.GetState() == musterv1.Reply_RESERVED {
			once.Do(func() { no(r) })
		}
		return true
	})
}

func TestAUnitThatAnAgentRefusesGoesElsewhere(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		var once sync.Once
		var taken resource.NodeID
		var foreign resource.TxID
		c.Tap(func(m rig.Message) bool {
			r := m.ToAgent.GetReserve()
			if r == nil {
				a := m.ToAgent.GetAbort() // of work that the leader must not end
				return a == nil || a.Tx != string(foreign)
			}
			once.Do(func() { // something that the leader does not know of is faster
				taken = m.Node
				foreign = resource.NewTxID("foreign", resource.Epoch(r.Epoch), 1, resource.Nonce{1})
				other := &musterv1.Reserve{
					Tx: string(foreign), Unit: "foreign", Epoch: r.Epoch,
					Members: r.Members, TtlMillis: 30_000,
				}
				if err := m.Inject(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: other}}); err != nil {
					t.Error(err)
				}
			})
			return true
		})
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: time.Second})
		if a.Status.Phase != api.Running || a.Status.NodeID == taken {
			t.Errorf("%s on %s; %s refused", a.Status.Phase, a.Status.NodeID, taken)
		}
		if c.Aborted() != 1 {
			t.Errorf("%d records ABORTED, want 1", c.Aborted())
		}
		c.Converge() // the foreign promise ran out and was fenced
	})
}

func TestAUnitThatIsRefusedAgainAndAgainBacksOff(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		c.Tap(func(m rig.Message) bool {
			if r := m.FromAgent.GetReply(); r.GetState() == musterv1.Reply_RESERVED {
				no(r)
			}
			return true
		})
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: 20 * time.Second})
		if a.Status.Phase != api.Pending {
			t.Errorf("a is %s", a.Status.Phase)
		}
		// 20 ms doubling to 2 s: some 16 attempts in 20 s, not thousands.
		if n := c.Aborted(); n < 10 || n > 20 {
			t.Errorf("%d attempts in 20s", n)
		}
		c.Tap(nil)
		phase(t, c, "a", api.Running)
		c.Converge()
	})
}

func TestAPromiseOfALostMemoryDoesNotCount(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["commit"](x) {
				once.Do(func() { // between Yes and commit the host restarts
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
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		a := phase(t, c, "a", api.Running)
		if c.Aborted() != 1 {
			t.Errorf("%d records ABORTED, want 1", c.Aborted())
		}
		rec := c.Records()[a.Status.Transaction]
		if rec.Members[0].Incarnation != c.Agent("n1").Incarnation() {
			t.Errorf("committed under %v", rec.Members[0].Incarnation)
		}
		c.Converge()
	})
}

func TestAnAgentThatHasNotRegisteredFreesNothing(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 6})
		c.Converge()
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if rig.Touches(x, record.NodeIdentityKey("n1")) {
				return rig.Lost
			}
			return rig.None
		})
		c.Agent("n1").Reboot()
		c.Eventually("the agent is connected, not registered", func() bool {
			n, err := k.GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Unregistered"
		})
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 2, Wait: 10 * time.Second})
		if b.Status.Phase != api.Pending {
			t.Errorf("b is %s on an agent that may not promise", b.Status.Phase)
		}
		if n, err := k.GetNode(t.Context(), "n1"); err != nil || n.Status.Available[resource.GPU] != "2" {
			t.Errorf("%v, available %v, want 2 GPUs", err, n.Status.Available)
		}
		phase(t, c, "a", api.Running)
		k.Gate.OnTxn(nil)
		phase(t, c, "b", api.Running)
		c.Converge()
	})
}

func TestWhatRunsStaysThroughAnyDeathOfItsAgent(t *testing.T) {
	for name, dies := range map[string]func(*rig.Agent){
		"the process restarts":     (*rig.Agent).Restart,
		"the host restarts":        (*rig.Agent).Reboot,
		"the host loses its disk":  (*rig.Agent).Replace,
		"it is away for some time": func(a *rig.Agent) { a.Stop(); time.AfterFunc(time.Minute, a.Start) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(2)
				submit(t, k, rig.Submission{Name: "j", GPUs: 6, Members: 2, Gang: 2, Wait: time.Minute})
				before := devices(t, k)
				dies(c.Agent("n1"))
				b := allocate(t, k, rig.Submission{Name: "b", GPUs: 2, Wait: 2 * time.Minute})
				if b.Status.Phase != api.Running {
					t.Errorf("b is %s", b.Status.Phase)
				}
				remove(t, k, "b")
				c.Converge()
				if after := devices(t, k); before != after {
					t.Errorf("before %s, after %s", before, after)
				}
			})
		})
	}
}

// devices lists the devices of job j's members.
func devices(t *testing.T, k *rig.Coordinator) string {
	t.Helper()
	text := ""
	for _, name := range []string{"j-0", "j-1"} {
		a, err := k.GetAllocation(t.Context(), rig.Namespace, name, 0)
		if err != nil || a.Status.Assignment == nil {
			t.Fatalf("%s: %v, %+v", name, err, a)
		}
		text += string(a.Status.NodeID) + " " + a.Status.Assignment.CPUs
		for _, g := range a.Status.Assignment.GPUs {
			text += " " + g.UUID
		}
		text += "\n"
	}
	return text
}

func TestALostMessageIsMadeGoodWhenTheStreamIsNew(t *testing.T) {
	lost := map[string]func(rig.Message) bool{
		"reserve":  func(m rig.Message) bool { return m.ToAgent.GetReserve() != nil },
		"yes":      func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_RESERVED },
		"commit":   func(m rig.Message) bool { return m.ToAgent.GetCommit() != nil },
		"held":     func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_HELD },
		"release":  func(m rig.Message) bool { return m.ToAgent.GetRelease() != nil },
		"freed":    func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_FREED },
		"forget":   func(m rig.Message) bool { return m.ToAgent.GetForget() != nil },
		"anything": func(m rig.Message) bool { return m.ToAgent.GetHello() == nil && m.FromAgent.GetHello() == nil },
	}
	for name, fits := range lost {
		for how, dies := range map[string]func(*rig.Agent){"process": (*rig.Agent).Restart, "host": (*rig.Agent).Reboot} {
			t.Run(name+" "+how, func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					c.Bring(2)
					var once sync.Once
					var restart sync.WaitGroup
					c.Tap(func(m rig.Message) bool {
						hit := false
						if fits(m) {
							once.Do(func() { // with this message the agent dies
								hit = true
								restart.Go(func() { dies(c.Agent(m.Node)) })
							})
						}
						return !hit
					})
					life(t, c)
					restart.Wait()
				})
			})
		}
	}
}

func TestAPromiseWhoseAbortIsLostStandsInNobodysWay(t *testing.T) {
	promise := map[string]struct {
		state musterv1.Reply_State
		runs  rig.Submission
	}{
		"reserved": {musterv1.Reply_RESERVED, rig.Submission{Name: "old", GPUs: 1}},
		"waiting":  {musterv1.Reply_WAITING, rig.Submission{Name: "old", GPUs: 8}},
	}
	for name, p := range promise {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(1)
				allocate(t, k, p.runs)
				var refused, lost string
				c.Tap(func(m rig.Message) bool {
					if r := m.FromAgent.GetReply(); r.GetState() == p.state && refused == "" {
						refused = r.Tx
						no(r)
					}
					if a := m.ToAgent.GetAbort(); a != nil && a.Tx == refused && lost == "" {
						lost = a.Tx
						return false
					}
					return true
				})
				start := time.Now()
				urgent := pushing("urgent", 7, 9)
				allocate(t, k, urgent)
				if p.state == musterv1.Reply_WAITING {
					phase(t, c, "old", api.Terminating)
				} else {
					phase(t, c, "urgent", api.Running)
				}
				if took := time.Since(start); took > time.Second || lost == "" {
					t.Errorf("after %v, the lost Abort is of %q", took, lost)
				}
				phase(t, c, "urgent", api.Running)
				c.Converge()
			})
		})
	}
}

func TestAnAgentThatComesBackIsConnectedWhenItRegisters(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		c.Bring(1)
		c.StartCoordinator("c2") // an agent may register with either
		connected := func() bool {
			n, err := c.Leader().GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Ready"
		}
		for i := range 8 {
			c.Agent("n1").Stop()
			time.Sleep(time.Minute + time.Duration(i)*370*time.Millisecond)
			c.Agent("n1").Start()
			start := time.Now()
			c.Eventually("the agent is connected", connected)
			if took := time.Since(start); took > 2*time.Second { // the leader writes what it sees once a second
				t.Errorf("connected %v after the agent started", took)
			}
		}
	})
}
