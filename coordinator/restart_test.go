package coordinator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/storetest"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/test/rig"
)

// succeed starts the next coordinator whenever one has died.
func succeed(c *rig.Cluster, k *rig.Coordinator, id string) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() { <-k.Ended(); c.StartCoordinator(id) })
	return &wg
}

func TestTheNextLeaderGoesOnWhereTheLastOneDied(t *testing.T) {
	for name, fits := range kinds {
		for fault, when := range map[rig.Fault]string{rig.CrashBefore: "before", rig.CrashAfter: "after"} {
			t.Run(when+" "+name, func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					k := c.Bring(1)
					if name == "fence" {
						refuseOnce(c)
					}
					choose, hit := rig.Once(fault, fits)
					k.Gate.OnTxn(choose)
					next := succeed(c, k, "c2")
					life(t, c)
					select {
					case <-hit:
						next.Wait()
					default:
						t.Error("no such write was sent")
						k.Stop()
						next.Wait()
					}
				})
			})
		}
	}
}

func TestTheNextLeaderGoesOnAfterAnyMessage(t *testing.T) {
	at := map[string]func(rig.Message) bool{
		"reserve": func(m rig.Message) bool { return m.ToAgent.GetReserve() != nil },
		"yes":     func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_RESERVED },
		"commit":  func(m rig.Message) bool { return m.ToAgent.GetCommit() != nil },
		"held":    func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_HELD },
		"release": func(m rig.Message) bool { return m.ToAgent.GetRelease() != nil },
		"freed":   func(m rig.Message) bool { return m.FromAgent.GetReply().GetState() == musterv1.Reply_FREED },
	}
	for name, fits := range at {
		for _, delivered := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					k := c.Bring(2)
					next := succeed(c, k, "c2")
					var once sync.Once
					c.Tap(func(m rig.Message) bool {
						if !fits(m) {
							return true
						}
						pass := true
						once.Do(func() { go k.Crash(); pass = delivered })
						return pass
					})
					life(t, c)
					next.Wait()
				})
			})
		}
	}
}

func TestTheNextLeaderForgetsWhatTheLastOneCouldNot(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		var mu sync.Mutex
		forgotten := map[string]bool{}
		c.Tap(func(m rig.Message) bool {
			tx := m.ToAgent.GetForget().GetTx()
			if tx == "" {
				return true
			}
			mu.Lock()
			defer mu.Unlock()
			forgotten[tx] = m.Coordinator == "c2"
			return m.Coordinator == "c2"
		})
		pass(15 * time.Second) // the agent has registered because of the election
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 1})
		remove(t, k, "a")
		phase(t, c, "a", "")
		k.Crash()
		next := c.StartCoordinator("c2")
		next.Gate.OnTxn(func(x record.Txn) rig.Fault { // the agent finds the record when it registers, and needs nobody then
			if rig.Touches(x, record.NodeSpecKey("n1")) {
				return rig.Lost
			}
			return rig.None
		})
		c.Eventually("the agent's tombstone is forgotten", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return forgotten[string(a.Status.Transaction)]
		})
		next.Gate.OnTxn(nil)
		c.Converge()
	})
}

func TestARecordKeepsTheEpochOfItsCommit(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		tx := allocate(t, k, rig.Submission{Name: "a", GPUs: 1}).Status.Transaction
		committed := c.Records()[tx]
		k.Stop()
		k = c.StartCoordinator("c2")
		c.AwaitReady(1)
		remove(t, k, "a")
		phase(t, c, "a", "")
		released := c.Records()[tx]
		if released.State != grant.RecordReleased || released.Epoch != committed.Epoch {
			t.Errorf("%s of epoch %d, committed in %d", released.State, released.Epoch, committed.Epoch)
		}
		if diff := cmp.Diff(committed.Members, released.Members); diff != "" {
			t.Errorf("members (-committed +released):\n%s", diff)
		}
	})
}

func TestAClientFindsWhatItsLostRequestMade(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		choose, _ := rig.Once(rig.CrashAfter, kinds["commit"])
		k.Gate.OnTxn(choose)
		s := rig.Submission{Name: "a", GPUs: 8, RequestID: "r"}
		_, _, err := k.Allocate(t.Context(), s)
		refused(t, err, 503, "ask again")
		c.StartCoordinator("c2")
		c.AwaitReady(1)
		a, repeated, err := c.Leader().Allocate(t.Context(), s)
		if err != nil || !repeated || a.Status.Phase != api.Running {
			t.Errorf("asked again: repeated %t, %v, %+v", repeated, err, a)
		}
		c.Converge()
	})
}

func TestBothDieAndEverythingStays(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 2, Gang: 2, Wait: time.Minute})
		allocate(t, k, rig.Submission{Name: "waits", GPUs: 1})
		before := devices(t, k)
		k.Crash()
		for _, a := range c.Agents() {
			a.Reboot()
		}
		k = c.StartCoordinator("c2")
		c.AwaitReady(2)
		c.Converge()
		if after := devices(t, k); before != after {
			t.Errorf("before %s, after %s", before, after)
		}
		phase(t, c, "waits", api.Pending)
	})
}

func TestAWriteOfADeposedLeaderDoesNotLand(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		reached, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["commit"](x) {
				once.Do(func() { close(reached); <-goOn })
			}
			return rig.None
		})
		answered := make(chan error, 1)
		go func() {
			_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 8, RequestID: "r"})
			answered <- err
		}()
		<-reached
		c.StartCoordinator("c2")
		depose(t, c)
		c.Eventually("the other one leads", func() bool { return c.Leader().ID == "c2" })
		c.AwaitReady(1)
		close(goOn) // only now the old leader's commit reaches the store
		refused(t, <-answered, 503, "ask again")
		c.Converge()
		for tx, r := range c.Records() {
			if r.State != grant.RecordAborted {
				t.Errorf("%s is %s", tx, r.State)
			}
		}
	})
}

// depose deletes the leader's key.
func depose(t *testing.T, c *rig.Cluster) {
	t.Helper()
	l, found, err := storetest.CurrentLeader(t.Context(), c.Store)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(l.Key)}}); err != nil {
		t.Fatal(err)
	}
}
