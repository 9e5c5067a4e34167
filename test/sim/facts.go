package sim

import (
	"time"

	"github.com/musterd/muster/resource"
)

// This file is what a leader and its clients tell the checker: all that it needs
// of whoever leads.

// admitted says that a leader charges an attempt, under this limit of the
// unit's namespace.
func (s *Sim) admitted(tx resource.TxID, limit int64) {
	if _, known := s.begun[tx]; !known {
		s.begun[tx] = len(s.begun)
	}
	s.checker.Admitted(tx, resource.Vector{resource.GPU: limit})
}

// preempts says that a leader asks these nodes to wait for victims.
func (s *Sim) preempts(tx resource.TxID, nodes []resource.NodeID) { s.checker.Nominated(tx, nodes) }

// evictionAsked says that an operator wants a transaction to end.
func (s *Sim) evictionAsked(tx resource.TxID) { s.checker.EvictionAsked(tx) }

// endAsked says that a client wants its unit to end.
func (s *Sim) endAsked(c *client) {
	c.ends = true
	for n := range max(1, c.units) {
		s.checker.EndAsked(c.nth(n))
	}
}

// checkAcknowledged is called when a commit is acknowledged.
func (s *Sim) checkAcknowledged(tx resource.TxID) { s.violated(s.checker.CommitTold(tx)) }

// promise notes the grace that an eviction brings.
func (h *host) promise(tx resource.TxID, grace time.Duration) {
	if w := h.running[tx]; w != nil {
		w.promised = grace
	}
}

// evicted is notice for an eviction: its grace is never cut short, and may be
// extended.
func (h *host) evicted(tx resource.TxID, promised time.Duration) {
	w := h.running[tx]
	switch {
	case w == nil:
	case w.noticed && !h.forgetful:
		w.grace = max(w.grace, promised)
	default:
		h.notice(tx, max(promised, w.promised))
	}
}
