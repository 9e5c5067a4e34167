package coordinator

import (
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// banOf is the ban of a node in the store's key, nil for none. A key that cannot
// be read bans: it was written to ban somebody, or to end that.
func banOf(kv record.KV) *record.Ban {
	if kv.ModRev == 0 {
		return nil
	}
	ban, err := record.Decode[record.Ban](kv.Key, kv.Value)
	switch {
	case err != nil:
		return &record.Ban{Banned: true, Reason: err.Error()}
	case !ban.Banned:
		return nil
	}
	return &ban
}

// banned returns a node's ban as far as this coordinator has followed the store,
// nil for none.
func (f *follower) banned(id resource.NodeID) *record.Ban {
	f.mu.Lock()
	defer f.mu.Unlock()
	return banOf(f.kvs[record.BanKey(id)])
}

// isBanKey reports whether a key holds a ban.
func isBanKey(key string) bool { return strings.HasPrefix(key, record.BansPrefix) }

// banChanged ends or opens the session to a node as its ban says. The node's
// connections were ended by coordinator/enroll, and a dial would be refused: here
// it is not tried any more. c.mu is held.
func (c *Coordinator) banChanged(id resource.NodeID) {
	if c.pool != nil {
		c.dial(id)
	}
}

// follow takes over what the store has of a node. Nothing is released by a ban:
// its allocations stay as those of a silent node do.
func (l *leader) follow(in followed) {
	id, n := in.node, l.nodes[in.node]
	if n == nil {
		return
	}
	n.takeStatus(in.status)
	before := n.ban
	if n.setFollowed(in); (before == nil) == (n.ban == nil) {
		return
	}
	if n.ban != nil {
		l.out.warn("node_banned", "node", id, "by", n.ban.By, "reason", n.ban.Reason)
	} else {
		l.out.warn("node_unbanned", "node", id)
	}
	n.setReady()
	l.wake()
}

// loadBans takes over the bans of nodes that have registered. The others' are
// known to coordinator/enroll, which lets none of them in.
func (v *view) loadBans(kvs []record.KV) error {
	for _, kv := range kvs {
		id, err := record.ParseBanKey(kv.Key)
		if err != nil {
			return err
		}
		if n := v.nodes[id]; n != nil {
			n.setBan(banOf(kv))
			n.setReady()
		}
	}
	return nil
}
