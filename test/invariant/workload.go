package invariant

import (
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file is what runs on hosts, and what ledgers are after a restart.

// checkWorkloads checks that no device is used twice.
func (c *Checker) checkWorkloads(h Host) {
	users := map[string]resource.TxID{}
	for _, w := range h.Workloads {
		for _, a := range w.Assignments {
			for _, g := range a.GPUs {
				if other, used := users[g.UUID]; used && other != w.Tx {
					c.report(of(I1Workloads, string(h.Node), g.UUID, string(other), string(w.Tx)), "%s runs %s for %s and for %s", h.Node, g.UUID, other, w.Tx)
				}
				users[g.UUID] = w.Tx
			}
		}
	}
	for _, r := range h.Remains {
		if other, used := users[r.UUID]; used && other != r.Tx && !r.Excused {
			c.report(of(I1Workloads, string(h.Node), r.UUID, string(other), string(r.Tx)), "%s runs %s for %s while something of %s runs there", h.Node, r.UUID, other, r.Tx)
		}
	}
}

// Launched says that a workload starts.
func (c *Checker) Launched(node resource.NodeID, tx resource.TxID) []Violation {
	if state := c.state.decided[tx]; !state.Charged() && !c.gone[tx] && !c.omitted[node] {
		c.report(of(I3Launch, string(node), string(tx)), "%s starts %s, which is %q", node, tx, state)
	}
	return c.taken()
}

// Buried says that a grant becomes a tombstone, and whether its workload runs.
func (c *Checker) Buried(node resource.NodeID, tx resource.TxID, runs bool) []Violation {
	if runs && !c.omitted[node] {
		c.report(of(I10Workloads, string(node), string(tx)), "%s frees %s while it runs", node, tx)
	}
	return c.taken()
}

// Stop is the end of a workload.
type Stop struct {
	Node    resource.NodeID
	Tx      resource.TxID
	Noticed bool // before
	Forced  bool // it did not end by itself
	// Passed is the time since the notice on the host's clock, Grace what was
	// promised.
	Passed, Grace time.Duration
}

// Stopped says that a workload ends.
func (c *Checker) Stopped(s Stop) []Violation {
	v := of(I8Stopped, string(s.Node), string(s.Tx))
	switch {
	case c.omitted[s.Node]:
	case !s.Noticed:
		c.report(v, "%s stops %s without a notice", s.Node, s.Tx)
	case s.Forced && s.Passed < s.Grace:
		v.Have, v.Bound = int64(s.Passed), int64(s.Grace)
		c.report(v, "%s stops %s by force after %v of %v", s.Node, s.Tx, s.Passed, s.Grace)
	}
	return c.taken()
}

// Memory is what a ledger amounts to.
type Memory struct {
	Hash       uint64
	Grants     int
	Quarantine ledger.Quarantine
}

// Replay is a ledger after a restart.
type Replay struct {
	Node resource.NodeID
	// Before is what the ledger was when its process was killed; nil where its
	// disk has lost something since.
	Before *Memory
	After  Memory
	// Problem is an error of the replay, or of the ledger's own check.
	Problem error
}

// Replayed says that a process has read its journal.
func (c *Checker) Replayed(r Replay) []Violation {
	if r.Problem != nil && !c.omitted[r.Node] {
		c.report(of(I9Replay, r.Node), "%s: replayed: %v", r.Node, r.Problem)
	}
	if r.Before == nil || c.omitted[r.Node] {
		return c.taken()
	}
	if r.Before.Hash != r.After.Hash || r.Before.Grants != r.After.Grants {
		v := of(I9Replay, r.Node)
		v.Have, v.Bound = int64(r.After.Grants), int64(r.Before.Grants)
		c.report(v, "%s held %d grants with hash %016x, its journal gives %d with %016x", r.Node, r.Before.Grants, r.Before.Hash, r.After.Grants, r.After.Hash)
	}
	if r.Before.Quarantine != r.After.Quarantine {
		c.report(of(I9Replay, r.Node), "%s was in quarantine %+v, its journal gives %+v", r.Node, r.Before.Quarantine, r.After.Quarantine)
	}
	return c.taken()
}

// checkEnd checks, when a charge ends, that nothing of it is owned or runs any
// more.
func (c *Checker) checkEnd(tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		if c.omitted[m.Node] {
			continue
		}
		h, v := c.hosts[m.Node], of(I10Word, string(tx), string(m.Node))
		if node := c.state.identities[m.Node]; !c.freed[m.Node][tx] && !(node.Fenced && node.ConfirmedDead) && !c.restored {
			c.report(v, "%s is RELEASED, %s has not freed it and is not fenced and confirmed dead", tx, m.Node)
		}
		if v.Rule = I10Workloads; h.runs(tx) {
			c.report(v, "%s is RELEASED and runs on %s", tx, m.Node)
		}
		if h.Agent == nil || c.lost[m.Node] == LostRecords || !h.Agent.Registered {
			continue
		}
		v.Rule = I10Held
		if g, _ := h.Agent.lookup(tx); g.State.Holds() {
			c.report(v, "%s is RELEASED and %s on %s", tx, g.State, m.Node)
		}
	}
}
