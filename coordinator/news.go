package coordinator

import (
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/lead"
)

// heardOfAgent has the term's pool look for an agent at once where it lives, or
// no more.
func (c *Coordinator) heardOfAgent(n follow.News) {
	if n.Spec != nil {
		c.registeredAt(n.Node, *n.Spec, n.Revision)
	}
	if l := c.term.Load(); l != nil {
		l.post(func() { l.tellFollowedOf(n.Node) })
		if n.Spec != nil {
			l.tell(lead.NodeRegistered{Node: n.Node, Spec: *n.Spec, Revision: n.Revision, Known: true})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.BanChanged {
		c.banChanged(n.Node)
		return
	}
	if n.Deleted {
		delete(c.targets, n.Node)
		delete(c.suspects, n.Node)
	}
	switch {
	case c.pool == nil, n.Followed:
	case n.Deleted:
		c.pool.RemoveTarget(n.Node)
	default: // without a session it does nothing
		c.pool.Registered(n.Node, n.Incarnation)
	}
}
