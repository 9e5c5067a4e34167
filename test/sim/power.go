package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
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
	case h.off && h.condemned():
		return false
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
	if h.agent == nil || h.beating || s.store.keys[record.NodeLeaseKey(h.node)].ModRev != 0 {
		return false
	}
	h.beat()
	return true
}

func (h *host) beat() {
	s, a := h.sim, h.agent
	h.beating = true
	s.ask("identity of "+string(h.node)+" for its lease", func() func() {
		who, e := value[record.NodeIdentity](s.store, record.NodeIdentityKey(h.node))
		return func() {
			if e.ModRev == 0 || who.Fenced {
				h.beating, a.register = false, true
				return
			}
			s.send(&write{
				what: "lease of " + string(h.node), compares: []record.Compare{record.ModRevIs(record.NodeIdentityKey(h.node), e.ModRev)},
				ops: []record.Op{record.Put(record.NodeLeaseKey(h.node), record.MustEncode(record.NodeLease{Coordinator: "c"}))}, done: func(txn.Outcome, resource.Revision) { h.beating = false },
			})
		}
	})
}

// actSilence lets a lease end: that of an agent that is down, or out of reach.
func (s *Sim) actSilence() bool {
	h := pick(s, s.hosts)
	if s.store.keys[record.NodeLeaseKey(h.node)].ModRev == 0 || h.agent != nil && s.rng.IntN(6) > 0 {
		return false
	}
	s.store.commit(nil, []record.Op{record.Delete(record.NodeLeaseKey(h.node))})
	s.logf("store: the lease of %s ends", h.node)
	return true
}

// actFence lets an operator fence a node.
func (s *Sim) actFence() bool {
	h := pick(s, s.hosts)
	if !h.off && s.rng.IntN(6) > 0 {
		return false
	}
	o := api.FenceOptions{ConfirmDead: h.off && s.rng.IntN(4) > 0, Force: s.rng.IntN(3) == 0, Reason: "an operator's wish"}
	return s.withTerm(nil, func(t *term) { t.fence(h, o) })
}

// actDeath switches a machine off and has an operator say that it is dead: some member of a
// gang is lost with it.
func (s *Sim) actDeath() bool {
	var ready []*host
	for _, kv := range s.store.all(record.TxPrefix) {
		r, tx := s.store.txs.of(kv), strings.TrimPrefix(kv.Key, record.TxPrefix)
		if c := s.clientOf(r.Unit.String()); r.State == grant.RecordCommitted && c != nil && c.heals && len(r.Members) > 1 && s.store.keys[record.ReadyKey(resource.TxID(tx))].ModRev != 0 {
			ready = append(ready, s.host(pick(s, r.Members).Node))
		}
	}
	if len(ready) == 0 {
		return false
	}
	h := pick(s, ready)
	if !h.off {
		h.reboot()
		h.off = true
		s.logf("%s: is off", h.node)
		s.stats["outages"]++
	}
	return s.withTerm(nil, func(t *term) {
		t.fence(h, api.FenceOptions{ConfirmDead: true, Force: true, Reason: "its power supply has burnt"})
	})
}

// fence asks for a fence. The word that a machine is dead is about the incarnation
// that the leader reads for this fence: until then the machine stays off.
func (t *term) fence(h *host, o api.FenceOptions) {
	t.sim.logf("%s: an operator fences %s (dead: %t, by force: %t)", t.name, h.node, o.ConfirmDead, o.Force)
	if o.ConfirmDead {
		t.condemning = h.node
	}
	o.ConfirmDead = o.ConfirmDead || t.sim.bug == FencedIsDead
	t.ask("a fence of "+string(h.node), lead.FenceNode{Node: h.node, Options: o}, func(effect) {})
	t.condemning = ""
}

// condemn notes that a read is about a machine that an operator calls dead.
func (t *term) condemn(read post.Token, key string) {
	node, err := record.ParseNodeKey(key)
	if err == nil && node.Part == record.NodeIdentityPart && node.ID == t.condemning {
		t.condemned[read], t.condemning = node.ID, ""
	}
}

// condemned reports whether an operator has just told that the machine is dead.
func (h *host) condemned() bool {
	return slices.ContainsFunc(h.sim.terms, func(t *term) bool {
		return !t.ended && slices.Contains(slices.Collect(maps.Values(t.condemned)), h.node)
	})
}
