package sim

import (
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
)

// This file is what breaks.

// actStall holds up a stream or a request: the network is slow, or one end is.
func (s *Sim) actStall() bool {
	until := s.step + 20 + s.rng.IntN(200)
	if n := s.rng.IntN(len(s.requests) + len(s.streams) + 1); n < len(s.requests) {
		s.requests[n].stalled = until
	} else if n -= len(s.requests); n < len(s.streams) {
		s.streams[n].stalled = until
	}
	return true
}

func (s *Sim) actBreak() bool {
	return s.withStream(func(st *stream) bool { return !st.ended }, func(st *stream) {
		s.logf("%s: its stream to %s breaks", st.term.name, st.agent.h.node)
		st.cut()
	})
}

// actExpire ends a candidacy's lease: mostly an orphan's, now and then the
// leader's while it goes on.
func (s *Sim) actExpire() bool {
	keys := s.store.under(record.LeaderPrefix)
	if len(keys) == 0 || s.rng.IntN(4) > 0 {
		return false
	}
	s.expire(pick(s, keys))
	return true
}

func (s *Sim) expire(key string) {
	s.store.commit(nil, []record.Op{record.Delete(key)})
	s.logf("store: the lease of %s ends", key)
}

// actNotice lets a deposed leader notice.
func (s *Sim) actNotice() bool {
	return s.withTerm(func(t *term) bool { return s.store.keys[t.key].CreateRev == 0 }, func(t *term) { s.depose(t, "it was deposed") })
}

func (s *Sim) depose(t *term, why string) {
	t.stop(why)
	for _, c := range s.coordinators {
		if c.term == t {
			c.term, c.key, c.early = nil, "", nil
		}
	}
}

// actCoordinator kills a coordinator, and another takes its place.
func (s *Sim) actCoordinator() bool {
	c := pick(s, s.coordinators)
	if c.key == "" || s.rng.IntN(3) > 0 {
		return false
	}
	if c.term != nil {
		s.depose(c.term, "its process is killed")
	}
	c.key, c.preparing, c.early = "", false, nil
	return true
}

// actLate lets a Txn land, or be lost, whose sender gave up long ago.
func (s *Sim) actLate() bool {
	if len(s.late) == 0 {
		return false
	}
	w := takeOut(s, &s.late)
	if s.rng.IntN(3) > 0 {
		s.logf("store: %s arrives late", w.what)
		s.land(w)
	}
	return true
}

// actGhost lets a command of the past come again.
func (s *Sim) actGhost() bool {
	if len(s.past) == 0 {
		return false
	}
	g := takeOut(s, &s.past)
	if g.host.agent == nil {
		return true
	}
	s.logf("%s: hears again, long after, %s", g.host.node, describe(order{command: g.command}))
	g.host.agent.obey(g.command, nil)
	return true
}

func (s *Sim) actKill() bool {
	pick(s, s.hosts).kill()
	return true
}

func (s *Sim) actReboot() bool {
	if s.rng.IntN(3) > 0 {
		return false
	}
	pick(s, s.hosts).reboot()
	return true
}

func (s *Sim) actDisk() bool {
	if s.rng.IntN(8) > 0 {
		return false
	}
	h := pick(s, s.hosts)
	if s.hasLost(h) && !s.stragglers {
		return false // what the store and the disk have both lost nobody knows
	}
	if s.rng.IntN(2) == 0 {
		h.wipe()
	} else {
		h.damage()
	}
	return true
}

// actHost changes a card, a device's health, or whether a node takes new work.
func (s *Sim) actHost() bool {
	h := pick(s, s.hosts)
	a := h.agent
	if a == nil {
		return false
	}
	switch s.rng.IntN(4) {
	case 0:
		a.rehost(s.rng.IntN(len(hardware()[0])))
		s.logf("%s: its hardware changes to kind %d", h.node, h.kind)
	case 1, 2:
		c := ledger.SetHealth{Device: s.rng.IntN(gpusPerNode - 1), Health: pick(s, []devices.Health{devices.OK, devices.OK, devices.Suspect}), Reason: "simulated"}
		s.logf("%s: device %d is %s", h.node, c.Device, c.Health)
		if _, ok := a.do(c, nil); ok {
			a.tell(a.health())
		}
	case 3:
		return s.withTerm(nil, func(t *term) { t.cordon(h, s.rng.IntN(4) == 0) })
	}
	return true
}

// cordon has a node take no new work, or take it again.
func (t *term) cordon(h *host, on bool) {
	if !t.Knows(h.node) {
		return
	}
	if !on && h.lying() && t.Accused(h.node) && t.sim.faults {
		return // see forgive
	}
	t.sim.logf("%s: an operator cordons %s: %t", t.name, h.node, on)
	t.ask("a cordon of "+string(h.node), lead.PatchNode{Node: h.node, Patch: api.NodePatch{Unschedulable: &on}}, func(effect) {})
}
