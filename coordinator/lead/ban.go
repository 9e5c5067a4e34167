package lead

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
)

// follow takes over what the store has of a node. Nothing is released by a ban:
// its allocations stay as those of a silent node do.
func (l *Leader) follow(in NodeFacts) {
	id, n := in.Node, l.nodes[in.Node]
	if n == nil {
		return
	}
	said := n.said
	n.takeStatus(in.Status)
	l.logLost(id, said.Conditions, n.said.Conditions)
	if said.revision != n.said.revision {
		l.judgeIdle(n)
	}
	before, quarantined := n.ban, n.quarantine != ""
	n.setFollowed(in)
	if quarantined != (n.quarantine != "") {
		l.noteQuarantine(n)
		l.setReady(n)
		n.rejoins = n.connected && n.quarantine == ""
		if n.rejoins {
			l.post.Command(id, grant.Resync{})
		}
		l.noteNewsOf(n)
	}
	if (before == nil) == (n.ban == nil) {
		return
	}
	if n.ban != nil {
		l.post.Warn("node_banned", "node", id, "by", n.ban.By, "reason", n.ban.Reason)
	} else {
		l.post.Warn("node_unbanned", "node", id)
	}
	l.setReady(n)
	l.wakeAll()
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
			n.setBan(record.BanOf(kv))
			n.setReady()
		}
	}
	return nil
}
