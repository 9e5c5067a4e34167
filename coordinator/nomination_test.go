package coordinator_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/test/rig"
)

// TestANoKeepsWhatAPreemptionHasCleared until its attempt is given up: another
// unit that came between would take the room for which others had to leave.
func TestANoKeepsWhatAPreemptionHasCleared(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "v", GPUs: 8, Priority: 1})
		var between atomic.Bool
		var mu sync.Mutex
		var refused string // the attempt, once
		var early []string
		c.Tap(func(m rig.Message) bool {
			mu.Lock()
			defer mu.Unlock()
			if r := m.FromAgent.GetReply(); r.GetState() == musterv1.Reply_RESERVED && refused == "" {
				refused = r.GetTx()
				r.State, r.Members = musterv1.Reply_NO, nil
				r.Reasons = []*musterv1.Reason{{Code: "Insufficient", Detail: "made up by the test"}}
			}
			if m.ToAgent.GetResync() != nil && refused != "" { // a node that answers No holds nothing
				abort := &musterv1.Abort{Tx: refused, Epoch: int64(k.Self().Epoch)}
				if err := m.Inject(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Abort{Abort: abort}}); err != nil {
					t.Error(err)
				}
			}
			if r := m.ToAgent.GetReserve(); r != nil && between.Load() {
				early = append(early, r.GetUnit())
			}
			return true
		})
		var other sync.WaitGroup
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["fence"](x) {
				once.Do(func() {
					between.Store(true)
					other.Go(func() { allocate(t, k, rig.Submission{Name: "q", GPUs: 8}) })
					time.Sleep(time.Second) // of the bubble: q has been looked at, and v has left
					between.Store(false)
				})
			}
			return rig.None
		})
		allocate(t, k, pushing("p", 8, 9))
		phase(t, c, "p", api.Running)
		other.Wait()
		once.Do(func() { t.Error("no attempt was given up") })
		mu.Lock()
		defer mu.Unlock()
		if len(early) > 0 {
			t.Errorf("%v were sent to the node before the preemption was given up", early)
		}
		c.Converge()
	})
}
