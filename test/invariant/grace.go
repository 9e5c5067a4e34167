package invariant

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the ends of parts as messages tell of them: I8 for what agents
// free, and the words that I5 and I10 count on.

// part is a transaction's part on a node.
type part struct {
	node resource.NodeID
	tx   resource.TxID
}

// graces are what agents were told to end with a grace. A part is not freed
// before the grace has passed since its record became EVICTING, from which the
// agent may know of it; unless its owner ended it, its host restarted, or its host
// counts as dead (an agent stops its work before others assume its death): then
// it ended by itself.
type graces struct {
	told     map[part]grace
	evicting map[resource.TxID]time.Time   // since when
	restarts map[resource.NodeID]time.Time // the last of each
	running  map[part]bool                 // was heard to be HELD since its host started
}

// grace is the longest one that was told. It is void once something else ends
// the part, or may have.
type grace struct {
	length time.Duration
	void   bool
}

func newGraces() graces {
	return graces{map[part]grace{}, map[resource.TxID]time.Time{}, map[resource.NodeID]time.Time{}, map[part]bool{}}
}

func (g graces) revoke(p part) {
	told := g.told[p]
	told.void = true
	g.told[p] = told
}

// Warned says that a leader tells an agent to evict a part.
func (c *Checker) Warned(node resource.NodeID, tx resource.TxID, length time.Duration) {
	p := part{node, tx}
	told, again := c.graces.told[p]
	if !again {
		told.void = !c.graces.restarts[node].Before(c.graces.evicting[tx])
	}
	told.length = max(told.length, length)
	c.graces.told[p] = told
}

// Dismissed says that a leader tells an agent to release a part.
func (c *Checker) Dismissed(node resource.NodeID, tx resource.TxID) {
	c.graces.revoke(part{node, tx})
}

// Held says that an agent is heard to hold a committed part.
func (c *Checker) Held(node resource.NodeID, tx resource.TxID) {
	c.graces.running[part{node, tx}] = true
}

// Restarted says that a host has restarted: what ran there has ended.
func (c *Checker) Restarted(node resource.NodeID, at time.Time) {
	c.graces.restarts[node] = at
	for p := range c.graces.running {
		if p.node == node {
			delete(c.graces.running, p)
		}
	}
	for p := range c.graces.told {
		if p.node == node {
			c.graces.revoke(p)
		}
	}
}

// Freed says that an agent is heard to have nothing of a transaction any more.
func (c *Checker) Freed(node resource.NodeID, tx resource.TxID, at time.Time) []Violation {
	if c.freed[node] == nil {
		c.freed[node] = map[resource.TxID]bool{}
	}
	c.freed[node][tx] = true
	told, known := c.graces.told[part{node, tx}]
	if passed := at.Sub(c.graces.evicting[tx]); known && !told.void && passed < told.length {
		v := of(I8Freed, string(node), string(tx))
		v.Have, v.Bound = int64(passed), int64(told.length)
		c.report(v, "%s freed %s %v after its record became EVICTING, which promised %v", node, tx, passed, told.length)
	}
	return c.taken()
}

// evicting takes a record that becomes EVICTING.
func (c *Checker) evicting(at time.Time, tx resource.TxID, r record.Tx) {
	c.graces.evicting[tx] = at
	for _, m := range r.Members {
		p := part{m.Node, tx}
		ended := !c.graces.running[p] && !c.graces.restarts[m.Node].IsZero() // by a restart, without a start since
		if ended || c.state.identities[m.Node].ConfirmedDead {
			c.graces.revoke(p)
		}
	}
}

// releasing takes a record that becomes RELEASING.
func (c *Checker) releasing(tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		c.graces.revoke(part{m.Node, tx})
	}
	if !c.state.ended[r.Unit] && !c.isUnwanted(r) && c.before[tx].State != grant.RecordEvicting {
		c.report(of(I4Asked, string(tx), r.Unit.String()), "%s is RELEASING and nobody has asked for the end of %s", tx, r.Unit)
	}
}
