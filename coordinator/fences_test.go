package coordinator_test

import (
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// A host that has transactions fenced which it has invented fills the store no
// longer than until they are swept, without an election.
func TestFencesOfInventedTransactionsAreSwept(t *testing.T) {
	const brief = 40 * time.Second
	bubble(t, rig.Options{Configure: func(c *coordinator.Config) { c.RecordRetention = brief }}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1, Wait: time.Minute})
		phase(t, c, "a", api.Running)
		var unit resource.UnitUID
		for tx := range c.Records() {
			unit, _, _, _ = tx.Attempt()
		}
		fence := func(unit resource.UnitUID, counter uint64, reason string) resource.TxID {
			tx := resource.NewTxID(unit, 1, counter, resource.Nonce{9})
			value, err := record.Encode(record.Tx{State: grant.RecordAborted, Epoch: 1, UnitUID: unit, Reason: reason})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.TxKey(tx), value)}}); err != nil {
				t.Fatal(err)
			}
			return tx
		}
		invented := map[resource.TxID]bool{}
		for i := range uint64(1200) { // several pages
			invented[fence("invented", i, rpc.FencedFor+"n1")] = true
		}
		kept := map[string]resource.TxID{
			"one of a unit that is there":  fence(unit, 1<<40, rpc.FencedFor+"n1"),
			"one that the leader has made": fence("gone", 1, "given up by the leader"),
		}
		left := func() (n int) {
			for tx := range c.Records() {
				if invented[tx] {
					n++
				}
			}
			return n
		}
		time.Sleep(brief / 2)
		if n := left(); n != len(invented) {
			t.Errorf("%d of %d are left at once", n, len(invented))
		}
		time.Sleep(3 * brief)
		if n := left(); n > 0 {
			t.Errorf("%d of %d are left", n, len(invented))
		}
		records := c.Records()
		for what, tx := range kept {
			if _, found := records[tx]; !found {
				t.Errorf("%s was deleted", what)
			}
		}
		phase(t, c, "a", api.Running)
		c.Converge()
	})
}
