package coordinator

import (
	"time"

	"github.com/musterd/muster/resource"
)

// This file is a leader that an agent does not let in, for it has seen a higher
// epoch. An epoch is a revision of the store, so either another leader has been
// elected since, or the store was restored from a backup and this epoch is of a
// revision that comes for the second time. An agent that finds the store behind
// the highest revision it has seen goes into quarantine and lets any leader in
// (ADR 10); where the store has outgrown that, only a leader of a higher epoch
// can help.

// resignEvery is the least time between two terms that a coordinator ends
// because of agents' messages.
const resignEvery = 10 * time.Second

// mayResign reports whether a term may end because of an agent's message, and
// records that it does.
func (c *Coordinator) mayResign(node resource.NodeID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deposers[node] || !c.resignedAt.IsZero() && time.Since(c.resignedAt) < resignEvery {
		return false
	}
	if c.deposers == nil {
		c.deposers = map[resource.NodeID]bool{}
	}
	c.deposers[node], c.resignedAt = true, time.Now()
	return true
}
