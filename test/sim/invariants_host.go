package sim

import (
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the invariants that a host keeps by itself.

// checkI5 verifies that what an agent said is free is not held there again
// before the record has ended. That charges end once is checkI11's.
func (s *Sim) checkI5(h *host) {
	a := h.agent
	if !h.lossless || a.l.Registration() == 0 {
		return
	}
	for tx := range h.freed {
		g, ok := a.l.Lookup(tx)
		if !ok || !g.State.Holds() {
			continue
		}
		if state := s.decided[tx]; state.Charged() || g.State != grant.Reserved {
			s.fail("I5", "%s freed %s, which is %s, and has it in %s", h.node, short(tx), state, g.State)
			return
		}
	}
}

// checkI8 verifies the grace of a workload that is stopped by force.
func (s *Sim) checkI8(h *host, tx resource.TxID, w *workload, force bool) {
	if h.lying() {
		return
	}
	if !w.noticed {
		s.fail("I8", "%s stops %s without a notice", h.node, short(tx))
	} else if passed := h.now().Sub(w.at); force && passed < w.grace {
		s.fail("I8", "%s stops %s by force after %v of %v", h.node, short(tx), passed, w.grace)
	}
}

// checkI9 verifies that a replay gives what the process held when it was
// killed.
func (s *Sim) checkI9(h *host, l *ledger.Ledger) {
	if h.lying() {
		return
	}
	if h.intact && (l.Hash() != h.lastHash || l.Len() != h.lastLen) {
		s.fail("I9", "%s held %d grants with hash %016x, its journal gives %d with %016x", h.node, h.lastLen, h.lastHash, l.Len(), l.Hash())
	}
	if h.intact && l.Quarantine() != h.lastQuarantine {
		s.fail("I9", "%s was in quarantine %+v, its journal gives %+v", h.node, h.lastQuarantine, l.Quarantine())
	}
	if err := l.Check(); err != nil {
		s.fail("I9", "%s: replayed: %v", h.node, err)
	}
}

// checkStopped is called when a grant becomes a tombstone.
func (s *Sim) checkStopped(h *host, tx resource.TxID) {
	if h.running[tx] != nil && !s.outlived(h, tx) && !h.lying() {
		s.fail("I10", "%s frees %s while it runs", h.node, short(tx))
	}
}

// checkI12Agent verifies that a command of an older epoch changes nothing.
func (s *Sim) checkI12Agent(h *host, seen resource.Epoch, c ledger.Command, events []ledger.Event) {
	var epoch resource.Epoch
	switch c := c.(type) {
	case grant.Reserve:
		epoch = c.Epoch
	case grant.Commit:
		epoch = c.Epoch
	case grant.Abort:
		epoch = c.Epoch
	case grant.Release:
		epoch = c.Epoch
	case grant.Evict:
		epoch = c.Epoch
	default:
		return
	}
	if epoch < seen && len(events) > 0 && !h.lying() {
		s.fail("I12", "%s has seen epoch %d and obeys %T of epoch %d", h.node, seen, c, epoch)
	}
}

// alarmed is called with what an agent tells its operator: what must not happen,
// unless the host has lost records.
func (s *Sim) alarmed(h *host, c ledger.Command, alarm string) {
	s.logf("%s: ALARM at %T: %s", h.node, c, alarm)
	s.stats["alarms"]++
	if !h.forgetful && !s.restored && !h.lying() {
		s.fail("alarm", "%s at %T: %s", h.node, c, alarm)
	}
}

// checkLaunch is the second half of I3: no workload starts before COMMITTED.
func (s *Sim) checkLaunch(h *host, tx resource.TxID) {
	if state := s.decided[tx]; !state.Charged() && !s.gone[tx] && !h.lying() {
		s.fail("I3", "%s starts %s, which is %q", h.node, short(tx), state)
	}
}
