package sim

import (
	"strings"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// This file is an operator after a restored backup: `muster reconcile`, and what
// is to be done beside it.

const (
	pending     = string(api.Pending)
	running     = string(api.Running)
	terminating = string(api.Terminating)
)

func notice(grace int64) txn.EvictAsked {
	return txn.EvictAsked{GraceSeconds: grace, Reason: "an operator's wish"}
}

func (s *Sim) actOperator() bool {
	return s.withTerm(nil, func(t *term) { t.operate(pick(s, s.hosts)) })
}

// operate does the next thing that is to be done about one node. It reports
// false if there is none.
func (t *term) operate(h *host) bool {
	if t.ended || t.operating || t.sim.elected() != t.epoch {
		return false
	}
	if t.endWhatCameBack() {
		return true
	}
	a := h.agent
	if a == nil || !t.hears(h) || !a.l.Known() {
		return false
	}
	if !a.l.Quarantine().IsZero() {
		t.reconcile(h)
		return true
	}
	lost := 0
	for _, g := range a.l.Snapshot().Grants {
		r, _ := value[record.Tx](t.sim.store, record.TxKey(g.Tx))
		if g.Origin == ledger.OriginTxn && (g.State == grant.Held || g.State == grant.Evicting) && !r.State.Charged() {
			// The store had grown beyond what the agent knew.
			t.tell(h.node, order{command: grant.Release{Tx: g.Tx, Epoch: t.epoch, Grace: time.Second, Reason: "the store had lost its record"}})
			lost++
		}
	}
	return lost > 0
}

// reconcile ends a node's quarantine.
func (t *term) reconcile(h *host) {
	t.operating = true
	grace := int64(t.sim.rng.IntN(5))
	o := api.ReconcileOptions{Mode: api.ReconcileRelease, GracePeriodSeconds: &grace}
	if t.sim.rng.IntN(3) > 0 {
		o.Mode = api.ReconcileAdopt
	}
	t.sim.logf("%s: an operator reconciles %s: %s", t.name, h.node, o.Mode)
	t.ask("the reconciliation of "+string(h.node), lead.ReconcileNode{Node: h.node, Options: o}, func(effect) { t.operating = false })
}

// endWhatCameBack ends work with a unit, also of its growth, that an agent does not hold any
// more: the unit had ended after the backup was made.
func (t *term) endWhatCameBack() bool {
	s := t.sim
	for _, c := range s.live {
		for _, kv := range s.store.all(strings.TrimSuffix(c.path().Key(), "0")) {
			u := s.store.units.of(kv)
			rec, _ := value[record.Tx](s.store, record.TxKey(u.TxID))
			for _, m := range rec.Members {
				h := s.host(m.Node)
				if u.Phase != running || !s.checker.Back(u.TxID) || t.ending[u.TxID] || h.agent == nil || !h.agent.l.Known() || !t.hears(h) {
					continue
				}
				if g, _ := h.agent.l.Lookup(u.TxID); !g.State.Holds() {
					s.logf("%s: an operator ends %s, which is not held on %s", t.name, c.name, m.Node)
					t.ending[u.TxID] = true
					s.endAsked(c)
					t.ask("the end of "+c.name, c.ending(0), func(effect) { delete(t.ending, u.TxID) })
					return true
				}
			}
		}
	}
	return false
}

// forgive is an operator who lets all nodes back.
func (t *term) forgive() {
	no := false
	for _, h := range t.sim.hosts {
		if t.Accused(h.node) {
			t.ask("the return of "+string(h.node), lead.PatchNode{Node: h.node, Patch: api.NodePatch{Unschedulable: &no}}, func(effect) {})
		}
	}
}
