package rig

import (
	"errors"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
)

// Restore puts a backup in the place of the store's content, under whatever
// runs. What is checked begins anew with it.
func (c *Cluster) Restore(b mem.Backup) {
	c.t.Helper()
	c.Store.Restore(b)
	var back *record.WentBackError
	if _, _, _, err := c.Store.Get(c.t.Context(), record.Root); errors.As(err, &back) {
		c.Store.Acknowledge(back)
	}
}
