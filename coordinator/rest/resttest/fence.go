package resttest

import (
	"context"

	"github.com/musterd/muster/api"
)

// FenceNode implements rest.Nodes. Every node here is alive until it is fenced,
// and a fenced one never comes back.
func (c *Cluster) FenceNode(_ context.Context, name string, o api.FenceOptions) (*api.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.host(name)
	if err != nil {
		return nil, err
	}
	if !h.fenced && !o.Force {
		return nil, api.Errorf(409, "node %s is alive: its agent is heard. Wait until its lease has expired, or use force", name)
	}
	h.fenced, h.unschedulable = true, true
	for key, a := range c.allocations {
		if o.ConfirmDead && a.Status.Phase == api.Running && a.Status.NodeID == h.Name {
			c.stop(key, a, api.Failed)
			a.Status = api.AllocationStatus{Phase: api.Failed, Message: "NodeLost: node " + name + " is confirmed dead"}
		}
	}
	c.touch()
	n := c.node(h)
	n.Status.Phase, n.Status.Conditions = "Fenced", []api.Condition{{Type: "Ready", Status: "False", Reason: "Fenced", Message: o.Reason}}
	return &n, nil
}
