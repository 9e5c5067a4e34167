package sim

import (
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
)

// This file is what happens at hosts while nothing breaks.

// actTick lets an agent look at its deadlines.
func (s *Sim) actTick() bool {
	h := pick(s, s.hosts)
	if h.agent == nil {
		return false
	}
	at, ok := h.agent.l.Next()
	if (!ok || h.now().Before(at)) && len(h.agent.unresolved) == 0 && !h.agent.register {
		return false
	}
	s.logf("%s: looks at what is due", h.node)
	h.agent.tick()
	return true
}

// actStop lets a workload end that was told to.
func (s *Sim) actStop() bool {
	h := pick(s, s.hosts)
	txs := h.stoppable()
	if len(txs) == 0 {
		return false
	}
	h.stop(pick(s, txs), false)
	return true
}

// actLaunch lets a workload start again, after the host has.
func (s *Sim) actLaunch() bool {
	h := pick(s, s.hosts)
	if h.agent == nil || h.agent.l.Registration() == 0 {
		return false
	}
	started := false
	for _, g := range h.agent.l.Snapshot().Grants {
		if g.State == grant.Held && g.Origin == ledger.OriginTxn && h.running[g.Tx] == nil && (h.agent.sure[g.Tx] || !s.fences) && (h.lossless || s.decided[g.Tx].Charged()) {
			s.logf("%s: %s starts again", h.node, short(g.Tx))
			h.launch(h.agent, g.Tx)
			started = true
		}
	}
	return started
}

func (s *Sim) actStartAgent() bool {
	h := pick(s, s.hosts)
	if h.agent != nil || h.off {
		return false
	}
	h.startAgent()
	return true
}

func (s *Sim) actSync() bool {
	h := pick(s, s.hosts)
	h.disk.synced = len(h.disk.payloads)
	return true
}

func (s *Sim) actCompact() bool {
	h := pick(s, s.hosts)
	if h.agent == nil {
		return false
	}
	h.disk.compact(h.agent.l)
	s.logf("%s: compacts its journal", h.node)
	return true
}
