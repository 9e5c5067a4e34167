package coordinator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

// TestAFullStore: while the store takes no more, nothing is acknowledged and
// nothing is lost; once it does again, everything goes on.
func TestAFullStore(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "kept", GPUs: 1, Wait: time.Minute})
		allocate(t, k, rig.Submission{Name: "ends", GPUs: 1, Wait: time.Minute})
		var sent atomic.Int64
		k.Gate.OnTxn(func(record.Txn) rig.Fault { sent.Add(1); return rig.None })
		c.Store.SetFull(true)
		for range 10 {
			// Each gives up after a while, as a client would.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			a, _, err := c.Leader().Allocate(ctx, rig.Submission{Name: "new", GPUs: 1, RequestID: "new"})
			if cancel(); err == nil {
				t.Fatalf("acknowledged by a store that takes nothing: %+v", a.Status)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
			_, err = c.Leader().DeleteAllocation(ctx, rig.Namespace, "ends", api.DeleteOptions{})
			if cancel(); err == nil {
				t.Fatal("a release was acknowledged by a store that takes nothing")
			}
			pass(30 * time.Second)
		}
		// A few a second, not one per answer.
		if n := sent.Load(); n > 3000 {
			t.Errorf("%d transactions were sent to a full store in five minutes", n)
		}
		phase(t, c, "kept", api.Running)
		c.Store.SetFull(false)
		again(t, c, "create new", func(k *rig.Coordinator) error {
			_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "new", GPUs: 1, RequestID: "new"})
			return err
		})
		phase(t, c, "new", api.Running)
		// The release that was asked for goes through, though it was not promised.
		phase(t, c, "ends", "")
		phase(t, c, "kept", api.Running)
		c.Converge()
	})
}
