package coordinator_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/test/rig"
)

// The victim is a gang. The gang's dead node registers again between the decision and
// the commit, and the commit would end the gang without an answer of the node.
func TestAPreemptorsCommitEndsNobodyWhoseNodeIsBack(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "v", GPUs: 8, Members: 2, Gang: 2, Priority: 1, Wait: time.Minute})
		if _, err := k.SetUnschedulable(t.Context(), "n2", true); err != nil {
			t.Fatal(err)
		}
		allocate(t, k, pushing("p", 8, 9))
		phase(t, c, "v-0", api.Terminating)
		c.Agent("n2").Crash()
		fence(t, c, "n2", api.FenceOptions{ConfirmDead: true, Force: true})
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["commit"](x) {
				once.Do(func() {
					fenced, _, _, err := c.Store.Get(t.Context(), record.NodeIdentityKey("n2"))
					if err != nil {
						t.Error(err)
					}
					c.Agent("n2").Start()
					c.Eventually("n2 has registered", func() bool {
						now, _, _, err := c.Store.Get(t.Context(), fenced.Key)
						return err == nil && now.ModRev > fenced.ModRev
					})
				})
			}
			return rig.None
		})
		phase(t, c, "p", api.Running)
		once.Do(func() { t.Error("p was not committed") })
		for tx, r := range c.Records() {
			if len(r.Unheard) > 0 {
				t.Errorf("%s ended without the word of %v, which was back", tx, r.Unheard)
			}
		}
		c.Converge()
	})
}

// words are the messages of a preemption, each with the first name to fit.
var words = map[string]func(rig.Message) bool{
	"reserve": func(m rig.Message) bool { return len(m.ToAgent.GetReserve().GetAfter()) > 0 },
	"waiting": func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_WAITING },
	"evict":   func(m rig.Message) bool { return m.ToAgent.GetEvict() != nil },
	"notice":  func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_EVICTING },
	"freed":   func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_FREED },
}

func TestAPreemptionGoesOnUnderTheNextLeader(t *testing.T) {
	for name, fits := range words {
		for _, delivered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s delivered %t", name, delivered), func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					k := c.Bring(2)
					next := succeed(c, k, "c2")
					var once sync.Once
					c.Tap(func(m rig.Message) bool {
						pass := true
						if fits(m) {
							once.Do(func() { go k.Crash(); pass = delivered })
						}
						return pass
					})
					turn(t, c)
					next.Wait()
				})
			})
		}
	}
}

func TestAPreemptionOutlivesItsAgents(t *testing.T) {
	for name, fits := range words {
		for how, dies := range map[string]func(*rig.Agent){"process": (*rig.Agent).Restart, "host": (*rig.Agent).Reboot, "disk": (*rig.Agent).Replace} {
			t.Run(name+" "+how, func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					c.Bring(2)
					var once sync.Once
					var restart sync.WaitGroup
					c.Tap(func(m rig.Message) bool {
						pass := true
						if fits(m) {
							once.Do(func() {
								pass = false
								restart.Go(func() { dies(c.Agent(m.Node)) })
							})
						}
						return pass
					})
					turn(t, c)
					restart.Wait()
				})
			})
		}
	}
}

func deleteJob(t *testing.T, k *rig.Coordinator, name string) error {
	_, err := k.DeleteJob(t.Context(), rig.Namespace, name, api.DeleteOptions{})
	return err
}

func TestTheNextLeaderAdoptsWhatWaits(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 2, Gang: 2, Priority: 2, Wait: time.Minute})
		submit(t, k, rig.Submission{Name: "p", GPUs: 8, Members: 2, Gang: 2, Priority: 9, Policy: "PreemptLowerPriority"})
		phase(t, c, "j-0", api.Terminating)
		start := time.Now()
		k.Crash()
		c.StartCoordinator("c2")
		p := phase(t, c, "p-0", api.Running)
		if waited := time.Since(start); waited > 35*time.Second {
			t.Errorf("p runs %v after its victims were told", waited)
		}
		if c.Aborted() != 0 {
			t.Errorf("%d attempts were given up", c.Aborted())
		}
		for tx, r := range c.Records() {
			if r.Unit.Name == "j" && (r.By != p.Status.Transaction || r.State != grant.RecordReleased) {
				t.Errorf("%s is %+v", tx, r)
			}
		}
		c.Converge()
	})
}

func TestTheNextLeaderGivesUpWhatNobodyWaitsFor(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 2, Gang: 2, Priority: 2, Wait: time.Minute})
		submit(t, k, rig.Submission{Name: "p", GPUs: 8, Members: 2, Gang: 2, Priority: 9, Policy: "PreemptLowerPriority"})
		phase(t, c, "j-0", api.Terminating)
		c.Agent("n1").Stop()
		k.Crash()
		c.StartCoordinator("c2")
		c.Eventually("the preemption is given up", func() bool { return c.Aborted() == 1 })
		c.Agent("n1").Start()
		phase(t, c, "p-0", api.Running)
		phase(t, c, "j-0", api.Pending)
		c.Converge()
	})
}
