package sim

import "github.com/musterd/muster/test/invariant"

// This file is how processes, machines and disks end.

// crash ends the process, as kill -9 does.
func (h *host) crash(where string) {
	a := h.agent
	if a == nil {
		return
	}
	h.sim.logf("%s: agent ends %s", h.node, where)
	h.sim.stats["agent crashes"]++
	a.dead, h.agent = true, nil
	for _, st := range h.sim.streams {
		if st.agent == a {
			st.cut()
		}
	}
}

// kill is a crash at rest: what was answered is in the page cache.
func (h *host) kill() {
	if a := h.agent; a != nil {
		h.last, h.intact = invariant.Memory{Hash: a.l.Hash(), Grants: a.l.Len(), Quarantine: a.l.Quarantine()}, true
	}
	h.crash("by kill")
}

// reboot is the operating system's end: what was not synced may be gone, and
// nothing runs any more.
func (h *host) reboot() {
	s, d := h.sim, &h.disk
	h.crash("with its machine")
	h.intact = false
	if unsynced := len(d.payloads) - d.synced; unsynced > 0 {
		keep := s.rng.IntN(unsynced + 1)
		if keep < unsynced && s.rng.IntN(2) == 0 {
			d.doubt = true // a torn record is seen; without one the loss leaves no trace
		}
		d.payloads = d.payloads[:d.synced+keep]
	}
	d.synced = len(d.payloads)
	h.boot++
	h.bootedAt, h.jumped, h.rate = s.clock, 0, 900+s.rng.Int64N(201)
	clear(h.running)
	h.stragglers = nil
	s.logf("%s: reboots", h.node)
	s.stats["reboots"]++
}

// wipe empties the disk under a dead agent.
func (h *host) wipe() {
	h.crash("for its disk is gone")
	h.intact = false
	h.disk.payloads, h.disk.synced = nil, 0
	h.disk.renew()
	h.loses(invariant.LostRecords)
	h.sim.logf("%s: its disk is empty", h.node)
}

// damage loses synced records, which the journal notices.
func (h *host) damage() {
	h.crash("for its disk is damaged")
	h.intact = false
	d := &h.disk
	if len(d.payloads) > 0 {
		d.payloads = d.payloads[:h.sim.rng.IntN(len(d.payloads)+1)]
	}
	d.synced, d.doubt = len(d.payloads), true
	h.loses(invariant.LostRecords)
	h.sim.logf("%s: its disk keeps %d records", h.node, len(d.payloads))
}

// rehost gives the machine other cards.
func (a *agent) rehost(kind int) {
	h := a.h
	h.kind = kind
	if err := a.l.Rehost(h.hardware()); err != nil {
		h.sim.fail("I1", "%s: %v", h.node, err)
		return
	}
	h.sim.touched(h)
	a.explain()
	if a.session != nil {
		a.session.cut()
	}
	a.session, a.register = nil, true
}
