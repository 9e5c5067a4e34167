package sim

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is machines that are off, their leases, and an operator who fences
// their nodes. He says of a machine that it is dead only if it is off when the
// store is asked who is registered there.

// outages are drawn too, once in a while, in a run with fences.
var outages = []func(*Sim) bool{(*Sim).actPower, (*Sim).actBeat, (*Sim).actBeat, (*Sim).actSilence, (*Sim).actFence}

// actPower switches a machine off, or on again.
func (s *Sim) actPower() bool {
	h := pick(s, s.hosts)
	switch {
	case h.off:
		h.powerOn()
	case s.rng.IntN(4) > 0:
		return false
	default:
		h.reboot()
		h.off = true
		s.logf("%s: is off", h.node)
		s.stats["outages"]++
	}
	return true
}

func (h *host) powerOn() {
	h.off, h.bootedAt = false, h.sim.clock
	h.sim.logf("%s: is on again", h.node)
}

// actBeat lets an agent be heard: its lease begins, unless it is fenced.
func (s *Sim) actBeat() bool {
	h := pick(s, s.hosts)
	if h.agent == nil || h.beating || s.store.keys[leaseKey(h.node)].value != nil {
		return false
	}
	h.beat()
	return true
}

func (h *host) beat() {
	s, a := h.sim, h.agent
	h.beating = true
	s.ask("identity of "+string(h.node)+" for its lease", func() func() {
		who, e := value[identity](s.store, identityKey(h.node))
		return func() {
			if e.value == nil || who.fenced {
				h.beating, a.register = false, true
				return
			}
			s.send(&write{
				what: "lease of " + string(h.node), compares: []record.Compare{record.ModRevIs(identityKey(h.node), e.mod)},
				ops: []op{{leaseKey(h.node), true}}, done: func(txn.Outcome, resource.Revision) { h.beating = false },
			})
		}
	})
}

// actSilence lets a lease end: that of an agent that is down, or out of reach.
func (s *Sim) actSilence() bool {
	h := pick(s, s.hosts)
	if s.store.keys[leaseKey(h.node)].value == nil || h.agent != nil && s.rng.IntN(6) > 0 {
		return false
	}
	s.store.commit(nil, []op{{leaseKey(h.node), nil}})
	s.logf("store: the lease of %s ends", h.node)
	return true
}

// actFence lets an operator fence a node.
func (s *Sim) actFence() bool {
	h := pick(s, s.hosts)
	if !h.off && s.rng.IntN(6) > 0 {
		return false
	}
	confirms := s.rng.IntN(4) > 0
	f := fencing{node: h.node, force: s.rng.IntN(3) == 0, attempts: fenceAttempts, dead: func() bool { return confirms && h.off }}
	return s.withTerm(nil, func(t *term) {
		s.logf("%s: an operator fences %s (dead: %t, by force: %t)", t.name, h.node, f.dead(), f.force)
		t.fence(f)
	})
}
