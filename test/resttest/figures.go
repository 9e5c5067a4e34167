package resttest

import "github.com/musterd/muster/coordinator/lead"

// Leading is true: the one term has no end.
func (c *Cluster) Leading() bool { return true }

// Figures returns a copy of the leader's figures.
func (c *Cluster) Figures() *lead.Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader.Figures()
}
