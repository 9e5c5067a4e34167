package coordinator

import (
	"strings"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// news is a sign of a live agent in the store: it has registered, perhaps with
// another coordinator. Every registration writes the specification, one of a
// new incarnation the identity as well. Or its node was deleted.
type news struct {
	node        resource.NodeID
	deleted     bool
	followed    bool                 // only the leader needs to know
	banChanged  bool                 // it was banned, or is no longer: nothing else is news
	incarnation resource.Incarnation // zero: as before
	spec        *record.NodeSpec     // as it is now; nil: as before
	revision    resource.Revision    // of spec
}

// newsOf is the news in a change, before the cache takes the change. f.mu is
// held.
func (f *follower) newsOf(e record.Event) (news, bool) {
	if isBanKey(e.KV.Key) {
		return banNews(e)
	}
	if !strings.HasPrefix(e.KV.Key, record.NodesPrefix) {
		return news{}, false
	}
	key, err := record.ParseNodeKey(e.KV.Key)
	if err != nil {
		return news{}, false // it is refused where it is shown
	}
	n := news{node: key.ID}
	if e.Type == record.EventDelete {
		n.deleted = key.Part == record.NodeSpecPart
		return n, n.deleted
	}
	switch key.Part {
	case record.NodeIdentityPart:
		identity, err := record.Decode[record.NodeIdentity](e.KV.Key, e.KV.Value)
		if err != nil {
			return news{}, false
		}
		if n.followed = identity.Fenced; !n.followed {
			n.incarnation = identity.Incarnation
		}
	case record.NodeSpecPart:
		spec, err := record.Decode[record.NodeSpec](e.KV.Key, e.KV.Value)
		if err != nil {
			return news{}, false
		}
		n.spec, n.revision = &spec, e.KV.ModRev
	case record.NodeStatusPart:
		n.followed = true
	default:
		return news{}, false
	}
	return n, true
}

// heardOfAgent has the term's pool look for an agent at once where it lives, or
// no more.
func (c *Coordinator) heardOfAgent(n news) {
	if n.spec != nil {
		c.registeredAt(n.node, *n.spec, n.revision)
	}
	if l := c.term.Load(); l != nil {
		l.post(func() { l.tellFollowedOf(n.node) })
		if n.spec != nil {
			l.tell(lead.NodeRegistered{Node: n.node, Spec: *n.spec, Revision: n.revision, Known: true})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.banChanged {
		c.banChanged(n.node)
		return
	}
	if n.deleted {
		delete(c.targets, n.node)
		delete(c.suspects, n.node)
	}
	switch {
	case c.pool == nil, n.followed:
	case n.deleted:
		c.pool.RemoveTarget(n.node)
	default: // without a session it does nothing
		c.pool.Registered(n.node, n.incarnation)
	}
}

// banNews is the news of a change below record.BansPrefix.
func banNews(e record.Event) (news, bool) {
	id, err := record.ParseBanKey(e.KV.Key)
	return news{node: id, banChanged: true}, err == nil
}
