package coordinator_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/test/rig"
)

// kinds are the coordinator's writes, by the keys in their Txn.
var kinds = map[string]func(record.Txn) bool{
	"commit":    func(t record.Txn) bool { return rig.Writes(t, grant.RecordCommitted) },
	"fence":     func(t record.Txn) bool { return rig.Writes(t, grant.RecordAborted) },
	"releasing": func(t record.Txn) bool { return rig.Writes(t, grant.RecordReleasing) },
	"released":  func(t record.Txn) bool { return rig.Writes(t, grant.RecordReleased) },
	"enqueue":   func(t record.Txn) bool { return order(t, false) },
	"dequeue":   func(t record.Txn) bool { return order(t, true) && !rig.Touches(t, record.TxPrefix) },
	"job": func(t record.Txn) bool {
		return rig.Touches(t, record.JobsPrefix) && !rig.Touches(t, record.UnitsPrefix)
	},
	"job gone": func(t record.Txn) bool { return deletes(t, record.JobsPrefix) },
}

// order reports whether a Txn puts, or deletes, a place in the order.
func order(t record.Txn, gone bool) bool {
	for _, op := range t.Then {
		if strings.HasPrefix(op.Key, record.OrderPrefix) && op.Delete == gone {
			return true
		}
	}
	return false
}

func deletes(t record.Txn, prefix string) bool {
	for _, op := range t.Then {
		if strings.HasPrefix(op.Key, prefix) && op.Delete {
			return true
		}
	}
	return false
}

// life drives one of each object from its creation to its end, asking again
// where the answer asks for it. With any fault on the way, it ends the same.
func life(t *testing.T, c *rig.Cluster) {
	t.Helper()
	again(t, c, "create a", func(k *rig.Coordinator) error {
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 8, RequestID: "ra"})
		return err
	})
	phase(t, c, "a", api.Running)
	again(t, c, "create b", func(k *rig.Coordinator) error {
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "b", GPUs: 8, RequestID: "rb"})
		return err
	})
	again(t, c, "create job", func(k *rig.Coordinator) error {
		_, _, err := k.Job(t.Context(), rig.Submission{Name: "j", GPUs: 4, Members: 3, Gang: 2, RequestID: "rj"})
		return err
	})
	c.Converge()
	again(t, c, "delete b", func(k *rig.Coordinator) error {
		_, err := k.DeleteAllocation(t.Context(), rig.Namespace, "b", api.DeleteOptions{})
		return err
	})
	phase(t, c, "b", "")
	again(t, c, "delete a", func(k *rig.Coordinator) error {
		_, err := k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{})
		return err
	})
	c.Eventually("the gang's first two run", func() bool {
		j, err := c.Leader().GetJob(t.Context(), rig.Namespace, "j", 0)
		return err == nil && j.Status.Active >= 2
	})
	c.Converge()
	again(t, c, "cancel job", func(k *rig.Coordinator) error {
		_, err := k.CancelJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{})
		return err
	})
	c.Eventually("the job has ended", func() bool {
		j, err := c.Leader().GetJob(t.Context(), rig.Namespace, "j", 0)
		return err == nil && j.Status.Phase == api.Cancelled
	})
	again(t, c, "delete job", func(k *rig.Coordinator) error {
		_, err := k.DeleteJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{})
		return err
	})
	c.Converge()
	c.Eventually("nothing is left", func() bool {
		kvs, _, err := c.Store.Range(t.Context(), record.UnitsPrefix, store.RangeOptions{})
		jobs, _, err2 := c.Store.Range(t.Context(), record.JobsPrefix, store.RangeOptions{})
		return err == nil && err2 == nil && len(kvs)+len(jobs) == 0
	})
	if n := grants(c); n != 0 {
		t.Errorf("%d grants are left", n)
	}
}

// again asks until the answer is not "ask again". An object that is gone
// already when it is deleted once more counts as deleted.
func again(t *testing.T, c *rig.Cluster, what string, ask func(*rig.Coordinator) error) {
	t.Helper()
	asked := 0
	c.Eventually(what, func() bool {
		err := ask(c.Leader())
		asked++
		switch code := rig.Code(err); {
		case err == nil, code == 404 && asked > 1:
			return true
		case code == 503:
			return false
		default:
			t.Fatalf("%s: %d %v", what, code, err)
			return false
		}
	})
}

func TestWritesWithoutAnAnswerEndRight(t *testing.T) {
	for name, fits := range kinds {
		for fault, faultName := range map[rig.Fault]string{rig.Lost: "lost", rig.AnswerLost: "landed", rig.Late: "lands late"} {
			t.Run(name+" "+faultName, func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					k := c.Bring(1)
					if name == "fence" { // a fence needs a refusal before it
						refuseOnce(c)
					}
					choose, hit := rig.Once(fault, fits)
					k.Gate.OnTxn(choose)
					life(t, c)
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

func TestEveryWriteWithoutAnAnswerEndsRight(t *testing.T) {
	for _, fault := range []rig.Fault{rig.Lost, rig.AnswerLost, rig.Late} {
		bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
			k := c.Bring(1)
			random := rand.New(rand.NewPCG(1, uint64(fault)))
			var mu sync.Mutex
			k.Gate.OnTxn(func(x record.Txn) rig.Fault {
				if !rig.Touches(x, record.TxPrefix) && !rig.Touches(x, record.UnitsPrefix) && !rig.Touches(x, record.JobsPrefix) {
					return rig.None
				}
				mu.Lock()
				defer mu.Unlock()
				if random.IntN(3) == 0 {
					return rig.None
				}
				return fault
			})
			life(t, c)
		})
	}
}

func TestACommitThatLandedIsAcknowledgedWithoutASecondAttempt(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		choose, _ := rig.Once(rig.AnswerLost, kinds["commit"])
		k.Gate.OnTxn(choose)
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: time.Minute})
		if a.Status.Phase != api.Running || c.Aborted() != 0 {
			t.Errorf("%s, %d records ABORTED", a.Status.Phase, c.Aborted())
		}
		c.Converge()
	})
}

func TestACreationThatLandsLateMakesNoGhost(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		choose, hit := rig.Once(rig.Late, kinds["enqueue"])
		k.Gate.OnTxn(choose)
		allocate(t, k, rig.Submission{Name: "b", GPUs: 8})
		<-hit
		remove(t, k, "b")
		phase(t, c, "b", "")
		submitted := time.Now()
		choose, hit = rig.Once(rig.Late, kinds["enqueue"])
		k.Gate.OnTxn(choose)
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 2})
		<-hit
		if _, err := k.DeleteJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Converge()
		if time.Since(submitted) > 2*time.Second {
			t.Fatal("the late writes have landed already")
		}
		pass(10 * time.Second)
		c.Converge() // the store holds nothing that the leader does not know
	})
}
