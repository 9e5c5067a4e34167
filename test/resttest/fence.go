package resttest

import (
	"context"
	"slices"

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

// DeleteNode implements rest.Nodes.
func (c *Cluster) DeleteNode(_ context.Context, name string) (*api.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.host(name)
	if err != nil {
		return nil, err
	}
	if !h.fenced {
		return nil, api.Errorf(409, "node %s is alive: its agent is heard. Drain it with `muster drain %s`, stop its agent for good, and ask again when its lease has expired", name, name)
	}
	n := c.node(h)
	if len(n.Status.Allocations) > 0 {
		return nil, api.Errorf(409, "node %s has members of %d units, %s among them: `muster fence %s --confirm-dead`", name, len(n.Status.Allocations), n.Status.Allocations[0], name)
	}
	c.nodes = slices.DeleteFunc(c.nodes, func(o *host) bool { return o == h })
	c.touch()
	return &n, nil
}
