package resttest

import (
	"context"

	"github.com/musterd/muster/api"
)

// ReconcileNode implements rest.Nodes. The store here never goes back: no node
// is in quarantine.
func (c *Cluster) ReconcileNode(_ context.Context, name string, _ api.ReconcileOptions) (*api.Reconciliation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.host(name); err != nil {
		return nil, err
	}
	return nil, api.Errorf(409, "node %s is not in quarantine: there is nothing to reconcile", name)
}
