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

// Aborted counts the ABORTED records ever written.
func (c *Cluster) Aborted() int {
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	return c.audit.aborted
}
