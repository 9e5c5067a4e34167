package coordinator

import (
	"strings"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// banned returns a node's ban as far as this coordinator has followed the store,
// nil for none.
func (f *follower) banned(id resource.NodeID) *record.Ban {
	f.mu.Lock()
	defer f.mu.Unlock()
	return lead.BanOf(f.kvs[record.BanKey(id)])
}

// isBanKey reports whether a key holds a ban.
func isBanKey(key string) bool { return strings.HasPrefix(key, record.BansPrefix) }

// banChanged ends the session to a node that is banned, and opens it to one
// whose ban is lifted. The node's connections were ended by coordinator/enroll,
// and a dial would be refused: here it is not tried any more. c.mu is held.
func (c *Coordinator) banChanged(id resource.NodeID) {
	if c.pool != nil {
		c.dial(id)
	}
}
