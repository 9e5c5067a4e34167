package coordinator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

// bubble runs a test on its own clock. That the bubble ends proves that no
// goroutine is left.
func bubble(t *testing.T, o rig.Options, test func(*testing.T, *rig.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, rig.New(t, o)) })
}

// allocate submits an allocation that must be accepted.
func allocate(t *testing.T, k *rig.Coordinator, s rig.Submission) *api.Allocation {
	t.Helper()
	a, _, err := k.Allocate(t.Context(), s)
	if err != nil {
		t.Fatalf("allocation %s: %v", s.Name, err)
	}
	return a
}

// submit submits a job that must be accepted.
func submit(t *testing.T, k *rig.Coordinator, s rig.Submission) *api.Job {
	t.Helper()
	j, _, err := k.Job(t.Context(), s)
	if err != nil {
		t.Fatalf("job %s: %v", s.Name, err)
	}
	return j
}

// remove deletes an allocation that must be there.
func remove(t *testing.T, k *rig.Coordinator, name string) {
	t.Helper()
	if _, err := k.DeleteAllocation(t.Context(), rig.Namespace, name, api.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", name, err)
	}
}

// phase waits for an allocation's phase; "" means that it is gone.
func phase(t *testing.T, c *rig.Cluster, name string, want api.Phase) *api.Allocation {
	t.Helper()
	var a *api.Allocation
	c.Eventually(fmt.Sprintf("allocation %s is %q", name, want), func() bool {
		var err error
		a, err = c.Leader().GetAllocation(t.Context(), rig.Namespace, name, 0)
		if want == "" {
			return rig.Code(err) == 404
		}
		return err == nil && a.Status.Phase == want
	})
	return a
}

// refused checks an error's code and part of its message.
func refused(t *testing.T, err error, code int, part string) {
	t.Helper()
	if rig.Code(err) != code || !strings.Contains(err.Error(), part) {
		t.Errorf("error %d %v, want %d with %q", rig.Code(err), err, code, part)
	}
}

func TestAnAllocationWithRoomIsOneTxn(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		var txns int
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if rig.Touches(x, record.UnitsPrefix) || rig.Touches(x, record.TxPrefix) {
				txns++
			}
			return rig.None
		})
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 4})
		if a.Status.Phase != api.Running || len(a.Status.Assignment.GPUs) != 4 || txns != 1 {
			t.Errorf("%s with %+v after %d Txns, want Running with 4 GPUs after 1", a.Status.Phase, a.Status.Assignment, txns)
		}
		c.Converge()
	})
}

func TestAnAllocationWithoutRoomIsStoredAndWaits(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		start := time.Now()
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 1})
		if b.Status.Phase != api.Pending || b.Status.QueuePosition != 1 || time.Since(start) != 0 {
			t.Errorf("b is %s at position %d after %v", b.Status.Phase, b.Status.QueuePosition, time.Since(start))
		}
		b = allocate(t, k, rig.Submission{Name: "b2", GPUs: 1, Wait: 5 * time.Second})
		if waited := time.Since(start); b.Status.Phase != api.Pending || waited != 5*time.Second {
			t.Errorf("b2 is %s after waiting %v, want Pending after 5s", b.Status.Phase, waited)
		}
		c.Converge() // both are in the order
		remove(t, k, "a")
		for _, name := range []string{"b", "b2"} {
			b, err := k.GetAllocation(t.Context(), rig.Namespace, name, time.Minute)
			if err != nil || b.Status.Phase != api.Running {
				t.Errorf("%s after room came: %v, %+v", name, err, b)
			}
		}
		c.Converge()
	})
}

func TestAWaitEndsWhenRoomComes(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		time.AfterFunc(3*time.Second, func() { remove(t, k, "a") })
		start := time.Now()
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 8, Wait: time.Hour})
		if waited := time.Since(start); b.Status.Phase != api.Running || waited > 4*time.Second {
			t.Errorf("b is %s after %v, want Running after about 3s", b.Status.Phase, waited)
		}
		c.Converge()
	})
}

func TestARequestIDMakesASubmissionIdempotent(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		s := rig.Submission{Name: "a", GPUs: 2, RequestID: "r1"}
		first := allocate(t, k, s)
		sJob := rig.Submission{Name: "j", GPUs: 1, Members: 2, RequestID: "r2"}
		firstJob := submit(t, k, sJob)
		check := func(k *rig.Coordinator) {
			t.Helper()
			again, repeated, err := k.Allocate(t.Context(), s)
			if err != nil || !repeated || again.Metadata.UID != first.Metadata.UID {
				t.Errorf("the same again: repeated %t, %v, %+v", repeated, err, again)
			}
			againJob, repeated, err := k.Job(t.Context(), sJob)
			if err != nil || !repeated || againJob.Metadata.UID != firstJob.Metadata.UID {
				t.Errorf("the same job again: repeated %t, %v, %+v", repeated, err, againJob)
			}
			other := s
			other.GPUs = 3
			_, _, err = k.Allocate(t.Context(), other)
			refused(t, err, 409, `"r1" was used for another document`)
		}
		check(k)
		k.Stop()
		k = c.StartCoordinator("c2")
		c.AwaitReady(1)
		check(k)
		remove(t, k, "a")
		phase(t, c, "a", "")
		_, _, err := k.Allocate(t.Context(), s)
		refused(t, err, 409, "deleted since")

		// The name is free for another request; the old one stays spent, even
		// for a leader that only knows the store's content.
		s.RequestID = ""
		allocate(t, k, s)
		k.Stop()
		k = c.StartCoordinator("c1")
		c.AwaitReady(1)
		s.RequestID = "r1"
		_, _, err = k.Allocate(t.Context(), s)
		refused(t, err, 409, "deleted since")
		c.Converge()
	})
}

func TestNamesAreTakenOnce(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1})
		allocate(t, k, rig.Submission{Name: "x-1", GPUs: 1})
		submit(t, k, rig.Submission{Name: "j", GPUs: 1, Members: 2})
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 1})
		refused(t, err, 409, "allocation a already exists in namespace default")
		_, _, err = k.Allocate(t.Context(), rig.Submission{Name: "j-1", GPUs: 1})
		refused(t, err, 409, "the name j-1 is taken")
		_, _, err = k.Job(t.Context(), rig.Submission{Name: "x", GPUs: 1, Members: 2})
		refused(t, err, 409, "the name x-1 is taken")
		_, _, err = k.Job(t.Context(), rig.Submission{Name: "j", GPUs: 1, Members: 1})
		refused(t, err, 409, "job j already exists in namespace default")
		if a := allocate(t, k, rig.Submission{Namespace: "other", Name: "a", GPUs: 1}); a.Metadata.Namespace != "other" {
			t.Errorf("the other namespace's a: %+v", a.Metadata)
		}
		c.Converge()
	})
}

func TestOfManySubmissionsAtOnceUnderOneNameOneWins(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		var wg sync.WaitGroup
		codes := make([]int, 8)
		for i := range codes {
			wg.Go(func() {
				_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 1})
				codes[i] = rig.Code(err)
			})
		}
		wg.Wait()
		won := 0
		for _, code := range codes {
			switch code {
			case 0:
				won++
			case 409:
			default:
				t.Errorf("a submission was answered %d", code)
			}
		}
		if won != 1 {
			t.Errorf("%d submissions won: %v", won, codes)
		}
		c.Converge()
	})
}

func TestASubmissionLargerThanATxnIsRefused(t *testing.T) {
	bubble(t, rig.Options{MaxTxnOps: 24}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		_, _, err := k.Job(t.Context(), rig.Submission{Name: "j", GPUs: 1, Members: 12})
		refused(t, err, 422, "spec.parallelism: storing 12 members takes 26 operations, and the store takes 24 in one transaction: ask for 11 members at most, raise etcd's --max-txn-ops, or submit several jobs")
		submit(t, k, rig.Submission{Name: "j", GPUs: 1, Members: 11})
		c.Converge()
	})
}
