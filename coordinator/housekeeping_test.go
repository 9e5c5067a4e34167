package coordinator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/test/rig"
)

// pass lets time go by.
func pass(d time.Duration) { <-time.NewTimer(d).C }

func TestTerminalRecordsAreCollectedAfterTheirRetention(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		refuseOnce(c) // one ABORTED
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1})
		phase(t, c, "a", api.Running)
		remove(t, k, "a") // one RELEASED
		phase(t, c, "a", "")
		allocate(t, k, rig.Submission{Name: "b", GPUs: 1})
		pass(9 * time.Minute)
		if n := len(c.Records()); n != 3 {
			t.Errorf("%d records before their retention is over, want 3", n)
		}
		pass(2 * time.Minute)
		if n := len(c.Records()); n != 1 {
			t.Errorf("%d records are left, want 1: %v", n, c.Records())
		}
		c.Converge()
	})
}

func TestARecordWhoseCommitIsInDoubtIsKeptForTheEpoch(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		choose, _ := rig.Once(rig.Lost, kinds["commit"])
		k.Gate.OnTxn(choose)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1, Wait: time.Minute})
		pass(15 * time.Minute)
		if n := len(c.Records()); n != 2 { // the commit could still land on "absent"
			t.Errorf("%d records, want COMMITTED and ABORTED", n)
		}
		k.Stop()
		c.StartCoordinator("c2") // another epoch: now it cannot
		c.AwaitReady(1)
		pass(11 * time.Minute)
		if n := len(c.Records()); n != 1 {
			t.Errorf("%d records, want 1", n)
		}
		c.Converge()
	})
}

func TestRequestIDsAreForgottenAfterADay(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		s := rig.Submission{Name: "a", GPUs: 1, RequestID: "r"}
		allocate(t, k, s)
		remove(t, k, "a")
		phase(t, c, "a", "")
		pass(24 * time.Hour)
		_, _, err := k.Allocate(t.Context(), s)
		refused(t, err, 409, "was used already")
		pass(2 * time.Hour)
		kvs, _, err := c.Store.Range(t.Context(), record.RequestsPrefix, store.RangeOptions{})
		if err != nil || len(kvs) != 0 {
			t.Errorf("%v, %d requests are left", err, len(kvs))
		}
		allocate(t, k, s) // on a lease of this hour
		c.Converge()
	})
}

func TestTheStoresHistoryIsCompacted(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1})
		pass(16 * time.Minute)
		_, _, err := c.Store.Range(t.Context(), record.Root, store.RangeOptions{AtRevision: 2})
		if !errors.As(err, new(*record.CompactedError)) {
			t.Errorf("revision 2 is still there: %v", err)
		}
	})
}
