package coordinator

import "github.com/musterd/muster/resource"

// banChanged ends the session to a node that is banned, and opens it to one
// whose ban is lifted. The node's connections were ended by coordinator/enroll,
// and a dial would be refused: here it is not tried any more. c.mu is held.
func (c *Coordinator) banChanged(id resource.NodeID) {
	if c.pool != nil {
		c.dial(id)
	}
}
