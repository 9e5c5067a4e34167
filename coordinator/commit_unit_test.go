package coordinator_test

import (
	"sync"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

// TestACommitTakesNoUnitThatWasChangedMeanwhile: the epoch keeps other leaders
// out, and this compare all other writers, so that the decided unit is the one
// that runs.
func TestACommitTakesNoUnitThatWasChangedMeanwhile(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		allocate(t, k, rig.Submission{Name: "b", GPUs: 8}) // is stored, and waits
		phase(t, c, "b", api.Pending)
		var once sync.Once
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if kinds["commit"](x) {
				once.Do(func() {
					for _, op := range x.Then {
						if kv, found, _, err := c.Store.Get(t.Context(), op.Key); err == nil && found && rig.Touches(record.Txn{Then: []record.Op{op}}, record.UnitsPrefix) {
							if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(op.Key, kv.Value)}}); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			return rig.None
		})
		remove(t, k, "a")
		c.Eventually("the attempt is given up", func() bool { return c.Aborted() > 0 })
		once.Do(func() { t.Error("no commit was sent") })
	})
}
