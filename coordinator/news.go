package coordinator

import (
	"strings"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// news is what the store tells of an agent that lives: it has registered,
// perhaps with another coordinator. Every registration writes the specification,
// one of a new incarnation the identity as well. Or its node was deleted.
type news struct {
	node        resource.NodeID
	deleted     bool
	incarnation resource.Incarnation // zero: as before
	addr        string               // where it serves now; "": as before
	spec        *store.NodeSpec      // nil: as before
	specRev     resource.Revision    // of spec
}

// newsOf is what a change tells of an agent, before the change is taken. f.mu is
// held.
func (f *follower) newsOf(e store.Event) (news, bool) {
	if !strings.HasPrefix(e.KV.Key, store.NodesPrefix) {
		return news{}, false
	}
	key, err := store.ParseNodeKey(e.KV.Key)
	if err != nil {
		return news{}, false // it is refused where it is shown
	}
	n := news{node: key.ID}
	if e.Type == store.EventDelete {
		n.deleted = key.Part == store.NodeSpecPart
		return n, n.deleted
	}
	switch key.Part {
	case store.NodeIdentityPart:
		identity, err := store.Decode[store.NodeIdentity](e.KV.Key, e.KV.Value)
		if err != nil || identity.Fenced {
			return news{}, false
		}
		n.incarnation = identity.Incarnation
	case store.NodeSpecPart:
		spec, err := store.Decode[store.NodeSpec](e.KV.Key, e.KV.Value)
		if err != nil {
			return news{}, false
		}
		n.spec, n.specRev = &spec, e.KV.ModRev
		before, _ := store.Decode[store.NodeSpec](e.KV.Key, f.kvs[e.KV.Key].Value)
		if before.AgentAddr != spec.AgentAddr {
			n.addr = spec.AgentAddr
		}
	default:
		return news{}, false
	}
	return n, true
}

// heardOfAgent has the term's pool look for an agent at once where it lives, or
// no more.
func (c *Coordinator) heardOfAgent(n news) {
	if n.addr != "" && c.mayDial(n.node, n.addr) {
		c.AgentSeen(n.node, n.addr)
	}
	if l := c.term.Load(); l != nil && n.spec != nil {
		l.post(func() {
			if at := l.nodes[n.node]; at != nil { // else it was deleted since, or is not connected yet
				l.takeSpec(at, *n.spec, n.specRev)
			}
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.deleted {
		delete(c.targets, n.node)
		delete(c.suspects, n.node)
	}
	switch {
	case c.pool == nil:
	case n.deleted:
		c.pool.RemoveTarget(n.node)
	default:
		c.pool.Registered(n.node, n.incarnation)
	}
}
