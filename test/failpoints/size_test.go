package failpoints_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/long"
	"github.com/musterd/muster/test/rig"
)

// TestAGangIsOneTxn counts what reaches the store between the submission of a
// gang and the answer that it runs.
func TestAGangIsOneTxn(t *testing.T) {
	for _, members := range []int{8, 64, min(largestGang, long.Size(128, 512))} {
		limit := 128 // etcd's default
		if members > 64 {
			limit = 2048 // what Muster asks for
		}
		t.Run(fmt.Sprint(members, " members"), func(t *testing.T) {
			bubble(t, rig.Options{MaxTxnOps: limit, Poll: 10 * time.Second}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(members)
				var txns atomic.Int32
				k.Gate.OnTxn(func(x record.Txn) rig.Fault {
					if rig.Touches(x, record.TxPrefix) || rig.Touches(x, record.UnitsPrefix) || rig.Touches(x, record.JobsPrefix) {
						txns.Add(1)
					}
					return rig.None
				})
				j, _, err := k.Job(t.Context(), rig.Submission{Name: "g", GPUs: 8, Members: members, Gang: members, Wait: time.Minute})
				if err != nil || j.Status.Active != members || txns.Load() != 1 {
					t.Fatalf("%d of %d members run after %d Txns, %v", j.Status.Active, members, txns.Load(), err)
				}
				nodes := map[string]bool{}
				for _, a := range j.Status.Allocations {
					nodes[a.Node] = true
				}
				if len(nodes) != members {
					t.Errorf("the members are on %d nodes", len(nodes))
				}
				c.Converge()
			})
		})
	}
}

func TestAGangLargerThanATxnIsRefusedWithTheNumbers(t *testing.T) {
	bubble(t, rig.Options{MaxTxnOps: 24}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(20)
		_, _, err := k.Job(t.Context(), rig.Submission{Name: "g", GPUs: 8, Members: 20, Gang: 20})
		if rig.Code(err) != 422 || !strings.Contains(err.Error(), "20 members") || !strings.Contains(err.Error(), "the store takes 24") {
			t.Errorf("%v", err)
		}
		c.Converge()
	})
}

func TestAGangThatBecomesLargerThanATxnSaysSo(t *testing.T) {
	bubble(t, rig.Options{MaxTxnOps: 24}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		if _, _, err := k.Job(t.Context(), rig.Submission{Name: "g", GPUs: 8, Members: 30, Gang: 30}); err != nil {
			t.Fatal(err)
		}
		var txns atomic.Int32
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			if rig.Touches(x, record.TxPrefix) {
				txns.Add(1)
			}
			return rig.None
		})
		for n := 2; n <= 30; n++ {
			c.StartAgent(resource.NodeID(fmt.Sprint("n", n)))
		}
		pass(time.Minute)
		e, err := k.ExplainJob(t.Context(), rig.Namespace, "g", service.ExplainOptions{Operator: true})
		if err != nil || txns.Load() != 0 || !strings.Contains(e.Summary, "it fits on 30 nodes, but to commit that takes 36 operations, and the store takes 24") {
			t.Errorf("%d Txns, %v, %+v", txns.Load(), err, e)
		}
		c.Converge()
	})
}
