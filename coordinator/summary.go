package coordinator

import "fmt"

// Summary says in one line what this coordinator does, for `systemctl status`. It
// may be called by any goroutine.
func (c *Coordinator) Summary() string {
	c.mu.Lock()
	nodes := len(c.targets)
	c.mu.Unlock()
	registered := fmt.Sprintf("%d nodes registered", nodes)
	switch nodes {
	case 0:
		registered = "no node has registered: agents find coordinators through gossip.join and coordinators of muster-agent.yaml"
	case 1:
		registered = "1 node registered"
	}
	if c.Leading() {
		return "leads; " + registered
	}
	if found, _ := c.follower.Candidates(); len(found) > 0 && found[0].Address.ID != c.config.ID {
		return "follows " + found[0].Address.ID + "; " + registered
	}
	return "no coordinator leads yet; " + registered
}
