package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// This file shows the checker of the invariants what is in the store and on the
// hosts. The store's keys and the hosts are all that it reads.

// newChecker returns a checker that knows what does not change in a run.
func (s *Sim) newChecker() *invariant.Checker {
	c := invariant.New(invariant.Sim())
	c.Renumbers()
	for _, h := range s.hosts {
		for _, kind := range hardware()[int(h.node[1]-'1')] {
			for _, d := range kind.Inventory().Devices {
				c.Cards(h.node, d.UUID)
			}
		}
		if h.lying() {
			c.LeaveOut(h.node)
		}
	}
	return c
}

// violated notes what the checker has found.
func (s *Sim) violated(found []invariant.Violation) {
	for _, v := range found {
		s.fail(v.Rule.Invariant(), "%s", v.Text)
	}
}

// follow takes what a revision of the store has changed.
func (s *Sim) follow(changed record.Batch) {
	s.changed = true
	if s.followed != nil {
		s.followed(changed)
	}
	for _, h := range s.hosts {
		s.show(h, nil)
	}
	b, failed := invariant.Decode(changed)
	for _, err := range failed {
		s.fail("store", "%v", err)
	}
	for _, c := range b.Changes {
		switch c := c.(type) {
		case invariant.Record:
			if c.New != nil {
				s.count(c.New.State)
			}
		case invariant.Identity:
			if c.New != nil && c.New.ConfirmedDead {
				s.deaths[c.Node] = true
			}
		}
	}
	s.violated(s.checker.Apply(b))
}

// count counts what becomes of transactions.
func (s *Sim) count(state grant.RecordState) {
	switch state {
	case grant.RecordCommitted:
		s.stats["commits"]++
	case grant.RecordEvicting:
		s.stats["evictions"]++
	case grant.RecordReleased:
		s.stats["releases"]++
	case grant.RecordAborted:
		s.stats["aborted records"]++
	}
}

// touched says that a host is to be checked after this step.
func (s *Sim) touched(h *host) {
	s.dirty[h] = true
	h.version++
}

// check runs after every step over what the step changed.
func (s *Sim) check() {
	if len(s.dirty) == 0 && !s.changed {
		return
	}
	for _, h := range s.hosts {
		var problem error
		if s.dirty[h] && h.agent != nil {
			problem = h.agent.l.Check()
		}
		s.show(h, problem)
	}
	s.violated(s.checker.Moment())
	clear(s.dirty)
	s.changed = false
}

// showing is what the checker was shown of an agent.
type showing struct {
	agent   *agent
	version int
	shown   *invariant.Agent
}

// show shows the checker a host as it is now, with what its ledger's check finds.
func (s *Sim) show(h *host, problem error) {
	view := invariant.Host{Node: h.node}
	if a := h.agent; a != nil {
		if h.showing.agent != a || h.showing.version != h.version {
			h.showing = showing{a, h.version, agentOf(a)}
		}
		view.Agent = h.showing.shown
		view.Agent.Problem = problem
	}
	for _, tx := range slices.Sorted(maps.Keys(h.running)) {
		view.Workloads = append(view.Workloads, invariant.Workload{Tx: tx, Assignments: h.running[tx].assignment})
	}
	for _, g := range h.stragglers {
		view.Remains = append(view.Remains, invariant.Remain{Tx: g.tx, UUID: g.uuid, Excused: g.explained})
	}
	for _, d := range h.hardware().Inventory().Devices {
		view.Devices = append(view.Devices, d.UUID)
	}
	s.violated(s.checker.Observe(view))
}

func agentOf(a *agent) *invariant.Agent {
	return &invariant.Agent{
		Incarnation: a.incarnation, Registered: a.l.Registration() != 0, Quarantined: !a.l.Quarantine().IsZero(), Grants: a.l.Snapshot().Grants,
	}
}

func (s *Sim) host(id resource.NodeID) *host { return s.hosts[int(id[1]-'1')] }

// decided tells the checker what a ledger makes of a command.
func (a *agent) decided(seen resource.Epoch, c ledger.Command, events []ledger.Event) {
	d := invariant.Decision{Node: a.h.node, Seen: seen, Command: c, Events: events}
	if a.h.agent != nil {
		d.Heard, d.Quarantined = a.h.agent.heard, !a.h.agent.l.Quarantine().IsZero()
	}
	a.h.sim.violated(a.h.sim.checker.Decided(d))
}

// replayed tells the checker what a replay gives.
func (h *host) replayed(l *ledger.Ledger) {
	r := invariant.Replay{Node: h.node, After: invariant.Memory{Hash: l.Hash(), Grants: l.Len(), Quarantine: l.Quarantine()}, Problem: l.Check()}
	if h.intact {
		r.Before = &h.last
	}
	h.sim.violated(h.sim.checker.Replayed(r))
}

// buried tells the checker that a grant becomes a tombstone.
func (s *Sim) buried(h *host, tx resource.TxID) {
	runs := h.running[tx] != nil && !s.outlived(h, tx)
	s.violated(s.checker.Buried(h.node, tx, runs))
}

// stopped tells the checker that a workload ends.
func (s *Sim) stopped(h *host, tx resource.TxID, w *workload, force bool) {
	s.violated(s.checker.Stopped(invariant.Stop{Node: h.node, Tx: tx, Noticed: w.noticed, Forced: force, Passed: h.now().Sub(w.at), Grace: w.grace}))
}

// freed tells the checker of an answer Freed.
func (h *host) freed(tx resource.TxID) {
	h.sim.violated(h.sim.checker.Freed(h.node, tx, time.Time{}))
}

// alarmed is called with what an agent tells its operator: what must not happen,
// unless the host has lost records.
func (s *Sim) alarmed(h *host, c ledger.Command, alarm string) {
	s.logf("%s: ALARM at %T: %s", h.node, c, alarm)
	s.stats["alarms"]++
	s.violated(s.checker.Alarmed(h.node, alarm))
}

// loses says that records of a host are lost.
func (h *host) loses(l invariant.Loss) {
	h.forgetful = true
	h.lossless = h.lossless && l != invariant.LostRecords
	h.sim.checker.Lost(h.node, l)
}
