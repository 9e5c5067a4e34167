package sim

import (
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is what runs on a host.

// launch starts the workload of a grant that is HELD.
func (h *host) launch(a *agent, tx resource.TxID) {
	if h.running[tx] != nil {
		return
	}
	g, ok := a.l.Lookup(tx)
	if !ok || g.State != grant.Held {
		return
	}
	w := &workload{}
	for _, m := range g.Members {
		w.assignment = append(w.assignment, m.Assignment)
	}
	h.running[tx] = w
	h.excuse(tx, w)
	h.sim.violated(h.sim.checker.Launched(h.node, tx))
}

// notice tells a workload that it has to stop. One that does not run has
// stopped by then.
func (h *host) notice(tx resource.TxID, promised time.Duration) {
	if w := h.running[tx]; w != nil {
		w.noticed, w.at, w.grace = true, h.now(), promised
	}
}

// stop ends a workload, by force or because it ends by itself, and tells the
// agent's ledger.
func (h *host) stop(tx resource.TxID, force bool) {
	if w := h.running[tx]; w != nil {
		h.sim.stopped(h, tx, w, force)
		delete(h.running, tx)
		h.straggle(tx, w)
		h.sim.logf("%s: %s has stopped (by force: %t)", h.node, short(tx), force)
	}
	a := h.agent
	if a == nil {
		return
	}
	reply, ok := a.do(ledger.Stopped{Tx: tx, Busy: a.busy()}, nil)
	if !ok {
		return
	}
	a.tell(replied{Reply: reply})
	if h.sim.stragglers && a.l.Known() && (reply.State == grant.Evicting || reply.State == grant.Stopping) {
		h.sim.stats["lingering"]++
		h.sim.logf("%s: %s lingers", h.node, short(tx))
		a.look() // for the next time
	}
}

// stoppable are the grants whose end is waited for.
func (h *host) stoppable() []resource.TxID {
	var txs []resource.TxID
	if h.agent == nil {
		return nil
	}
	v := h.agent.l.Snapshot()
	follows := v.Quarantine.IsZero() && h.agent.l.Registration() > 0 // else a workload that has stopped stays a grant
	for _, g := range v.Grants {
		if ends := g.State == grant.Evicting || g.State == grant.Stopping; ends && (follows || h.running[g.Tx] != nil) {
			txs = append(txs, g.Tx)
		}
	}
	return txs
}
