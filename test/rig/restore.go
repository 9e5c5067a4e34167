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

// OverQuota allows that namespaces are charged more than their limits from now
// on: what runs and is adopted is charged whatever there is.
func (c *Cluster) OverQuota() {
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	c.audit.overQuota = true
	c.audit.checker.OverQuota()
}
