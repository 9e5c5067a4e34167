package coordinator

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file decides to which agents a leader opens streams: to registered nodes,
// at their registered addresses. A registration is authenticated. Gossip is not,
// and may only shorten the wait before the next stream (S4 of the threat model in
// docs/security.md).

// target is a registered node, as a leader would dial it. The zero value is of a
// node of which no registration is known.
type target struct {
	addr     string
	revision resource.Revision // of the specification with this address
	severed  bool              // isolated in the store, so that no stream may be open
	fell     bool              // the same, by this process: the store may not know of it
}

// mayDial reports whether a stream may be opened, as far as the node has not
// been banned.
func (t target) mayDial() bool { return t.addr != "" && !t.severed && !t.fell }

// mostSuspects bounds the suspicions kept about nodes that are not known.
const mostSuspects = 1 << 14

// registeredAt takes over where a node serves.
func (c *Coordinator) registeredAt(id resource.NodeID, spec record.NodeSpec, rev resource.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.learnTarget(id, spec, rev) && c.pool != nil {
		c.dial(id)
	}
}

// learnTarget takes a specification over, unless a newer one is known. c.mu is
// held.
func (c *Coordinator) learnTarget(id resource.NodeID, spec record.NodeSpec, rev resource.Revision) bool {
	t := c.targets[id]
	if rev < t.revision || rev == 0 {
		return false
	}
	severed := spec.Violation != nil && spec.Violation.Severed
	if t.severed && !severed { // an operator has let it back
		t.fell = false
	}
	t.severed = severed
	t.addr, t.revision = spec.AgentAddr, rev
	if t.addr != "" && c.config.CheckAgent != nil {
		if err := c.config.CheckAgent(t.addr); err != nil {
			c.log.Warn("agent_address_refused", "node", id, "error", err)
			t.addr = ""
		}
	}
	c.targets[id] = t
	return true
}

// dial has the term's pool connect to a node, or not: not while the node is
// isolated or banned. c.mu is held.
func (c *Coordinator) dial(id resource.NodeID) {
	if t := c.targets[id]; t.mayDial() && c.follower.Ban(id) == nil {
		c.pool.SetTarget(id, t.addr)
	} else {
		c.pool.RemoveTarget(id)
	}
}

// letBack ends an isolation as far as it keeps a stream from being opened.
func (c *Coordinator) letBack(id resource.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, known := c.targets[id]
	if !known || !t.severed && !t.fell {
		return
	}
	t.severed, t.fell = false, false
	c.targets[id] = t
	if c.pool != nil {
		c.dial(id)
	}
}

// AgentSeen reports that gossip has seen a node's agent: a session that waits
// to connect again may do so now. The address in gossip is not used: the
// registered one wins. A node that has not registered is not dialled.
func (c *Coordinator) AgentSeen(id resource.NodeID, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch t, known := c.targets[id]; {
	case !known:
		c.metrics.ignored.WithLabelValues("unregistered").Inc()
	case t.addr != addr:
		c.metrics.ignored.WithLabelValues("other_address").Inc()
	case c.pool != nil:
		c.pool.Hint(id) // of a session that is open, or waits
	}
}

// GossipIgnored counts gossip about an agent that contradicts itself.
func (c *Coordinator) GossipIgnored(reason string) { c.metrics.ignored.WithLabelValues(reason).Inc() }
