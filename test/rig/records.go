package rig

import (
	"context"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Records returns the records by transaction, as of some recent revision.
func (c *Cluster) Records() map[resource.TxID]record.Tx {
	kvs, _, err := c.Store.Range(context.Background(), record.TxPrefix, store.RangeOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	records := map[resource.TxID]record.Tx{}
	for _, kv := range kvs {
		tx, err := record.ParseTxKey(kv.Key)
		if err != nil {
			c.t.Fatal(err)
		}
		if records[tx], err = record.Decode[record.Tx](kv.Key, kv.Value); err != nil {
			c.t.Fatal(err)
		}
	}
	return records
}

// Aborted counts the ABORTED records ever written, up to now: the audit may be a
// few revisions behind.
func (c *Cluster) Aborted() int {
	c.t.Helper()
	kvs, _, err := c.Store.Range(context.Background(), record.Root, store.RangeOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	newest := resource.Revision(0)
	for _, kv := range kvs {
		newest = max(newest, kv.ModRev)
	}
	aborted := 0
	c.Eventually("the audit has seen what is there", func() bool {
		c.audit.mu.Lock()
		defer c.audit.mu.Unlock()
		aborted = c.audit.aborted
		return c.audit.checker.Revision() >= newest
	})
	return aborted
}
