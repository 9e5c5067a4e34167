package coordinator_test

import (
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

// TestAPreemptorsCommitEndsNobodyWhoseNodeIsBack: the victim is a gang, whose
// other node has died. That node registers between the decision and the commit,
// which would end the gang without its word.
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
