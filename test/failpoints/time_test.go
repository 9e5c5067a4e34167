package failpoints_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/storetest"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/test/rig"
)

// states counts an agent's grants by their state.
func states(a *rig.Agent) map[string]int {
	s, _ := a.Snapshot()
	count := map[string]int{}
	for _, g := range s.Grants {
		count[g.State]++
	}
	return count
}

// depose takes the leader's key away: its lease might have ended.
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

func TestAPromiseWhoseTimeIsOverIsFencedNotFreed(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		var promised, fenced atomic.Int64 // when, in nanoseconds
		c.OnStep(func(s rig.Step) error {
			switch {
			case s == rig.Step{Name: "hear reserved", Coordinator: "c1", Node: "n1"}:
				promised.CompareAndSwap(0, time.Now().UnixNano())
			case s == rig.Step{Name: "txn committed", Coordinator: "c1"} && fenced.Load() == 0:
				pass(time.Minute) // the store is slow, the leader's lease is not
			case s.Name == "txn agent's fence" && s.After:
				fenced.Store(time.Now().UnixNano())
			}
			return nil
		})
		go k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 8, Wait: 2 * time.Minute}) // what became of it is seen below
		pass(9 * time.Second)
		if got := states(c.Agent("n1")); got["RESERVED"] != 1 || fenced.Load() != 0 {
			t.Errorf("after 9s of 10s the agent has %v, fenced %t", got, fenced.Load() != 0)
		}
		pass(4 * time.Second)
		after := time.Duration(fenced.Load() - promised.Load())
		if got := states(c.Agent("n1")); len(got) != 0 || after < 10*time.Second || after > 12*time.Second {
			t.Errorf("the agent has %v and fenced after %v, want nothing and 10s to 12s", got, after)
		}
		c.Eventually("the allocation runs in another attempt", func() bool {
			a, err := k.GetAllocation(t.Context(), rig.Namespace, "a", 0)
			return err == nil && a.Status.Phase == "Running"
		})
		c.Converge()
	})
}

func TestAPromiseIsKeptWhileNoCoordinatorCanBeAsked(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if !rig.Writes(x, grant.RecordCommitted) {
				return rig.None
			}
			for _, way := range [][2]string{{"n1", "c1"}, {"c1", "n1"}} {
				c.Cut(way[0], way[1])
			}
			return rig.Lost
		})
		go k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 8}) // nobody waits for the answer
		pass(time.Hour)
		if got := states(c.Agent("n1")); got["RESERVED"] != 1 {
			t.Errorf("after an hour alone the agent has %v", got)
		}
		k.Gate.OnTxn(nil)
		c.Heal("n1", "c1")
		c.Heal("c1", "n1")
		c.Converge()
	})
}

func TestANodeThatIsNotHeardForLongLosesNothing(t *testing.T) {
	bubble(t, rig.Options{Heartbeat: 10 * time.Second}, func(t *testing.T, c *rig.Cluster) {
		c.Bring(2)
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		c.Converge()
		held := c.Records()
		leased := func() bool {
			_, found, _, err := c.Store.Get(t.Context(), record.NodeLeaseKey("n1"))
			return err == nil && found
		}
		c.Eventually("the node has its lease", leased)
		c.Cut("n1", "c1")
		c.Cut("c1", "n1")
		pass(grant.NodeLeaseTTL - 15*time.Second)
		if !leased() {
			t.Error("the node's lease ended early")
		}
		pass(10 * time.Minute)
		if leased() || len(c.Records()) != len(held) || states(c.Agent("n1"))["HELD"] != 1 {
			t.Errorf("leased %t, records %d of %d, the agent has %v", leased(), len(c.Records()), len(held), states(c.Agent("n1")))
		}
		c.Heal("n1", "c1")
		c.Heal("c1", "n1")
		c.Eventually("the node has its lease again", leased)
		w.settle()
	})
}

func TestARequestIDIsKnownForADayOverFailovers(t *testing.T) {
	bubble(t, rig.Options{Poll: time.Minute, Configure: func(c *coordinator.Config) { c.LeaseTTL = time.Minute }}, func(t *testing.T, c *rig.Cluster) {
		start := time.Now()
		c.StartCoordinator("c1")
		s := rig.Submission{Name: "a", GPUs: 8, RequestID: "r"}
		first, repeated, err := c.Leader().Allocate(t.Context(), s) // it waits: there is no node
		if err != nil || repeated {
			t.Fatal(repeated, err)
		}
		again := func() (uid string, repeated bool, err error) {
			a, repeated, err := c.Leader().Allocate(t.Context(), s)
			if err != nil {
				return "", repeated, err
			}
			return a.Metadata.UID, repeated, nil
		}
		for hour := 6; hour <= 24; hour += 6 {
			pass(time.Until(start.Add(time.Duration(hour)*time.Hour - time.Minute)))
			c.Leader().Crash()
			c.StartCoordinator(fmt.Sprint("c", hour))
			if uid, repeated, err := again(); err != nil || !repeated || uid != first.Metadata.UID {
				t.Errorf("after %v: %q, repeated %t, %v; want %q", time.Since(start), uid, repeated, err, first.Metadata.UID)
			}
		}
		pass(3 * time.Hour)
		c.Leader().Crash()
		c.StartCoordinator("c27")
		if _, _, err := again(); rig.Code(err) != 409 {
			t.Errorf("after %v: %v; want that the name is taken", time.Since(start), err)
		}
	})
}

// TestLeadershipIsLostAtEveryMoment cuts the leader off from its lease at one
// moment after the other while a gang comes and goes.
func TestLeadershipIsLostAtEveryMoment(t *testing.T) {
	for at := time.Duration(0); at < 6*time.Second; at += 250 * time.Millisecond {
		t.Run(at.String(), func(t *testing.T) {
			bubble(t, rig.Options{Poll: time.Second}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(2)
				c.StartCoordinator("c2")
				time.AfterFunc(at, func() {
					k.Gate.FailLeases(errors.New("out of reach"))
					time.AfterFunc(10*time.Second, func() { k.Gate.FailLeases(nil) })
				})
				c.OnStep(func(s rig.Step) error {
					if !s.After && (s.Name == "txn committed" || s.Name == "txn releasing" || s.Name == "txn released") {
						pass(time.Second) // so that the moment falls into one of them
					}
					return nil
				})
				w := newClient(t, c)
				w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
				w.runs("g")
				w.end("g")
				pass(10 * time.Second)
				w.settle()
			})
		})
	}
}

// TestALateAnswerDoesNotUndoWhatCameAfter: the store's answer to a cordon comes
// when the node has been uncordoned already.
func TestALateAnswerDoesNotUndoWhatCameAfter(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		var once atomic.Bool
		c.OnStep(func(s rig.Step) error {
			if s.Name == "txn node spec" && s.After && !once.Swap(true) {
				pass(20 * time.Second)
			}
			return nil
		})
		late := make(chan error, 1)
		go func() {
			_, err := k.SetUnschedulable(t.Context(), "n1", true)
			late <- err
		}()
		pass(time.Second)
		if _, err := k.SetUnschedulable(t.Context(), "n1", false); err != nil {
			t.Fatal(err)
		}
		if err := <-late; err != nil {
			t.Fatal(err)
		}
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		w.settle()
	})
}

func TestTenElectionsInAMinute(t *testing.T) {
	bubble(t, rig.Options{Poll: time.Second}, func(t *testing.T, c *rig.Cluster) {
		c.Bring(2)
		c.StartCoordinator("c2")
		c.StartCoordinator("c3")
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 2, Members: 2, Gang: 2})
		w.runs("g")
		flapping, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		elections := 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for flapping.Err() == nil {
				pass(6 * time.Second)
				depose(t, c)
				elections++
			}
		}()
		for i := 0; flapping.Err() == nil; i++ {
			name := fmt.Sprint("a", i)
			w.create(rig.Submission{Name: name, GPUs: 4})
			w.runs(name)
			if i%2 == 0 {
				w.end(name)
			} else if i > 2 {
				w.end(fmt.Sprint("a", i-2))
			}
			pass(time.Second)
		}
		<-ended
		if elections < 10 {
			t.Errorf("%d elections", elections)
		}
		w.settle()
	})
}

func TestAConnectionThatKeepsBreakingCostsNothing(t *testing.T) {
	bubble(t, rig.Options{Poll: time.Second}, func(t *testing.T, c *rig.Cluster) {
		c.Bring(2)
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 2, Members: 2, Gang: 2})
		w.runs("g")
		flapping, stop := context.WithTimeout(t.Context(), time.Minute)
		var over sync.WaitGroup
		defer over.Wait()
		defer stop()
		over.Go(func() {
			for flapping.Err() == nil {
				c.Agent("n1").Disconnect()
				pass(700 * time.Millisecond)
			}
		})
		for i := 0; flapping.Err() == nil; i++ {
			name := fmt.Sprint("a", i)
			w.create(rig.Submission{Name: name, GPUs: 4, Members: 2, Gang: 2})
			w.runs(name)
			w.end(name)
			pass(time.Second)
		}
		synctest.Wait()
		w.settle()
	})
}
