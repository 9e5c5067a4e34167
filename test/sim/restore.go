package sim

import (
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// This file is a store that is restored from a backup in the middle of a run.

// restoration is what a run knows of it.
type restoration struct {
	backupAt, restoreAt int // steps, 0 for never
	backup              *backup
	restored            bool
}

// backup is the store at one moment, and what the checks knew then.
type backup struct {
	store   *kvStore
	known   invariant.Mark
	clients []client
}

// plan draws, from numbers of its own, whether and when the store is restored.
func (s *Sim) plan(o Options) {
	rng, drawn := o.draw(Restores, 1, 3)
	if !drawn || o.Steps < 400 {
		return
	}
	s.restoreAt = o.Steps/4 + rng.IntN(o.Steps/2)
	s.backupAt = max(1, s.restoreAt-20-rng.IntN(o.Steps/4))
}

// restore does what the plan says of this step. It reports whether the step is
// taken by it.
//
// Coordinators are stopped for it, as the runbook says, and with them ends all
// that is on its way: calls, streams, Txns. Agents and workloads go on. That
// journals are on the disk by then keeps the two losses apart.
func (s *Sim) restore() bool {
	switch s.step {
	case s.backupAt:
		s.backup = &backup{store: s.store.snapshot(), known: s.checker.Mark()}
		for _, c := range s.clients {
			s.backup.clients = append(s.backup.clients, *c)
		}
		return false
	case s.restoreAt:
	default:
		return false
	}
	s.logf("the store goes back from revision %d to %d", s.store.rev, s.backup.store.rev)
	s.stats["restored stores"]++
	for _, c := range s.coordinators {
		if c.term != nil {
			s.depose(c.term, "the store is to be restored")
		}
		c.key, c.preparing, c.early = "", false, nil
		clear(c.deposers)
	}
	s.requests, s.answers, s.late, s.past = nil, nil, nil, nil
	for _, h := range s.hosts {
		h.disk.synced = len(h.disk.payloads)
		if a := h.agent; a != nil {
			a.register = a.register || a.calling
			a.calling = false
			clear(a.calls)
		}
	}
	s.checker.Restore(s.backup.known)
	s.store = s.backup.store
	s.store.follow = s.follow
	s.changed, s.restored = true, true
	s.forgetTheForgotten()
	s.takeBack(s.backup.clients)
	clear(s.logs) // attempts of before may come again
	return true
}

// forgetTheForgotten ends the workloads that the store has lost and the host's
// journal does not hold any more either. Nobody knows of them; what runs without
// a grant is for the host to find.
func (s *Sim) forgetTheForgotten() {
	for _, h := range s.hosts {
		l := ledger.New(h.hardware())
		if err := l.Replay(h.disk.payloads); err != nil {
			s.violated(s.checker.Replayed(invariant.Replay{Node: h.node, Problem: err}))
			return
		}
		h.orphan(l)
	}
}

// takeBack lets clients know what the restored store knows of them; one that it
// does not know has to ask again.
func (s *Sim) takeBack(then []client) {
	s.live = nil
	for i, c := range s.clients {
		c.asked = nil
		if i < len(then) {
			c.acked, c.ends, c.over = then[i].acked, then[i].ends, then[i].over
		} else {
			c.acked, c.ends = "", false
		}
		if !c.over {
			s.live = append(s.live, c)
		}
	}
}

// refused is an agent that has seen a higher epoch than this term's.
func (t *term) refused(id resource.NodeID, highest resource.Epoch) {
	t.heard(grant.Refused{Node: id, Highest: highest})
}

// hasLost reports whether a host's agent holds what the store has lost.
func (s *Sim) hasLost(h *host) bool {
	if !s.restored {
		return false
	}
	if h.agent == nil {
		return s.checker.HasGone()
	}
	return slices.ContainsFunc(h.agent.l.Snapshot().Grants, func(g ledger.Grant) bool {
		return g.State.Holds() && s.checker.Gone(g.Tx) && !s.checker.LastState(g.Tx).Charged()
	})
}

// outlived reports whether a workload may lose its grant while it runs: an agent
// that could not see that the store went back, and lost its journal's last
// records, takes its lost grants for ended ones where another record has their
// devices (ADR 7).
func (s *Sim) outlived(h *host, tx resource.TxID) bool {
	if !h.blind || !s.checker.Gone(tx) || s.checker.LastState(tx).Charged() {
		return false
	}
	s.stats["ended by a restored store"]++
	delete(h.running, tx)
	return true
}

// actAudit is an agent's registration now and then, which sees whether the store
// has gone back.
func (s *Sim) actAudit() bool {
	if h := pick(s, s.hosts); h.agent != nil {
		h.agent.register = true
		return true
	}
	return false
}

// audit is actAudit of every agent.
func (s *Sim) audit() {
	for _, h := range s.hosts {
		if h.agent != nil {
			h.agent.register = true
		}
	}
}
