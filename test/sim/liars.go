package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is an agent that lies. In runs with Liars one host has an agent
// whose messages are false now and then: votes, occupancies, registrations and
// epochs; answers come late, twice, and about other transactions. Behind the
// lies is a real ledger, so that the host is worth lying about. The lies end
// with the faults.
//
// All invariants hold for everybody else. What the lies may spoil is the liar's
// own host, and these clauses leave it out (lying):
//
//   - I1: what runs on the liar's host, and the members of records there: the
//     liar may give one device of its own to two transactions, never a device of
//     another host.
//   - I3: that the liar's ledger holds a member there, and with the same things.
//     Every other member of the same record counts.
//   - I5, I8, I9, I12 and the alarms of the liar's own ledger and process.
//   - I7: that the liar's agent waits for the preemptor, and what it keeps for
//     another, also in the decision log: a device of the liar's that is nominated
//     may be planned with once the liar has called it free. Its own ledger refuses.
//   - I10: that a RELEASED record's part on the liar's host has stopped.
//   - I13: the liar's grants, and the leader's view of the liar's host.
//   - I11: that an operator does not adopt, after a restored store, what the liar
//     has freed and kept.
//
// I2, I4, I6 and what the store keeps of every unit (I3) have no exception,
// but for the names of the liar's own devices: a liar that has
// registered devices by the names of others is asked for them.

// liar is the state of the one host whose agent lies.
type liar struct {
	host *host
	rng  *rand.Rand
	late []lateWord
	// deposed are the leaders, by coordinator, that a claim of a higher epoch has
	// been made to: coordinators believe an agent once.
	deposed map[string]bool
}

// lateWord is a message that the liar has kept back.
type lateWord struct {
	stream *stream
	event  event
}

// planLiar draws whether a run has a liar, and which host it is.
func (s *Sim) planLiar(o Options) (at int, drawn bool) {
	rng, drawn := o.draw(Liars, 1, 3)
	s.liar.rng, s.liar.deposed = rng, map[string]bool{}
	return rng.IntN(nodeCount), drawn
}

// lying reports whether the host is the liar's.
func (h *host) lying() bool { return h == h.sim.liar.host }

// lieEvery is one message of how many is a lie.
const lieEvery = 3

// lie returns what the liar says in place of the truth.
func (s *Sim) lie(st *stream, e event) []event {
	l := &s.liar
	if st.agent.h != l.host || !s.faults {
		return []event{e}
	}
	out := l.overdue(st)
	if l.rng.IntN(lieEvery) > 0 {
		return append(out, e)
	}
	s.stats["lies"]++
	switch e := e.(type) {
	case replied:
		return append(out, l.reply(s, st, e)...)
	case occupied:
		return append(out, l.occupancy(s, e))
	case enrolled:
		e.revision += resource.Revision(l.rng.IntN(100) - 20)
		return append(out, e)
	case connected:
		e.occupancy = l.occupancy(s, e.occupancy)
		if l.rng.IntN(2) == 0 {
			e.registered += resource.Revision(l.rng.IntN(100) - 20)
		}
		if l.rng.IntN(4) == 0 {
			e.host = hardware()[l.rng.IntN(nodeCount)][l.rng.IntN(3)] // of another node
			for _, d := range e.host.Inventory().Devices {
				s.checker.Cards(l.host.node, d.UUID)
			}
		}
		return append(out, e)
	case health:
		e.cordoned, e.unhealthy = l.rng.IntN(2) == 0, l.rng.Uint64()
		return append(out, e)
	}
	return append(out, e)
}

// overdue returns messages that were kept back for this stream.
func (l *liar) overdue(st *stream) (out []event) {
	l.late = slices.DeleteFunc(l.late, func(w lateWord) bool {
		if w.stream != st {
			return w.stream.ended
		}
		if l.rng.IntN(3) > 0 {
			return false
		}
		out = append(out, w.event)
		return true
	})
	return out
}

// reply lies about one transaction.
func (l *liar) reply(s *Sim, st *stream, e replied) []event {
	e.Members = slices.Clone(e.Members)
	for i := range e.Members {
		e.Members[i].Assignment.GPUs = slices.Clone(e.Members[i].Assignment.GPUs)
		e.Members[i].Assignment.CPUs = slices.Clone(e.Members[i].Assignment.CPUs)
	}
	if len(e.Members) > 0 && l.rng.IntN(2) == 0 {
		l.members(&e)
		return []event{e}
	}
	switch l.rng.IntN(7) {
	case 0:
		return []event{e, e, e}
	case 1:
		l.late = append(l.late, lateWord{st, e})
		return nil
	case 2: // No, or Freed, though it holds
		e.Reasons, e.State = []resource.Reason{{Code: "lie"}}, grant.None
	case 3:
		e.Reasons, e.State, e.Members = nil, grant.Tombstone, nil
	case 4:
		e.State = grant.State(l.rng.IntN(int(grant.Tombstone) + 1))
	case 5: // about what is not there at all
		e.Tx = l.other(s, e.Tx)
	case 6:
		e.Registered += resource.Revision(l.rng.IntN(100) - 20)
	}
	return []event{e}
}

// members lies about what a vote gives.
func (l *liar) members(e *replied) {
	m := &e.Members[l.rng.IntN(len(e.Members))]
	switch l.rng.IntN(8) {
	case 0:
		e.Members = nil
	case 1:
		m.Index = l.rng.IntN(5) - 1
	case 2:
		e.Members = append(e.Members, *m)
	case 3:
		e.Members = append(e.Members, ledger.Holding{Index: m.Index + 1, Assignment: m.Assignment})
	case 4:
		m.Assignment = resource.Assignment{}
	case 5:
		if n := len(m.Assignment.GPUs); n > 0 {
			m.Assignment.GPUs = m.Assignment.GPUs[:n-1]
		}
	case 6: // another host's device
		other := hardware()[l.rng.IntN(nodeCount)][0].Inventory().Devices
		for i := range m.Assignment.GPUs {
			m.Assignment.GPUs[i].UUID = other[i%len(other)].UUID
		}
	case 7:
		for i := range m.Assignment.GPUs {
			m.Assignment.GPUs[i].Index += 60
		}
	}
}

// occupancy lies about everything that the ledger holds.
func (l *liar) occupancy(s *Sim, e occupied) occupied {
	e.grants = slices.Clone(e.grants)
	switch l.rng.IntN(5) {
	case 0:
		e.grants = nil
	case 1:
		e.unhealthy = l.rng.Uint64()
	}
	for i := range e.grants {
		g := &e.grants[i]
		switch l.rng.IntN(6) {
		case 0:
			g.State = grant.Tombstone
		case 1:
			g.State = grant.State(1 + l.rng.IntN(int(grant.Tombstone)))
		case 2:
			g.Tx = l.other(s, g.Tx)
		case 3:
			g.Members = nil
		case 4:
			g.Members = append(slices.Clone(g.Members), g.Members...)
		case 5: // a greater gang than there is
			g.UnitMembers += 1 + s.step%3
		}
	}
	return e
}

// other is a transaction that was begun, whoever takes part in it.
func (l *liar) other(s *Sim, tx resource.TxID) resource.TxID {
	n := l.rng.IntN(len(s.begun) + 1)
	for other, order := range s.begun {
		if order == n {
			return other
		}
	}
	return tx
}

// epoch is the highest epoch that the agent claims to have seen when a leader
// says hello, 0 for the truth.
func (l *liar) epoch(st *stream, hi *hello) resource.Epoch {
	if st.agent.h != l.host || !st.sim.faults || l.deposed[st.term.name] || l.rng.IntN(lieEvery) > 0 {
		return 0
	}
	l.deposed[st.term.name] = true
	st.sim.stats["lies"]++
	return hi.epoch + resource.Epoch(1+l.rng.IntN(50))
}

// actForgive is an operator who lets a liar back while it lies on.
func (s *Sim) actForgive() bool {
	return s.withTerm(func(t *term) bool { return t.Accused(s.liar.host.node) }, func(t *term) {
		s.logf("%s: %s is let back", t.name, s.liar.host.node)
		t.forgive()
	})
}

// repent ends the lies: what was kept back is lost, the liar's session begins
// anew with the truth, and an operator lets the host back.
func (s *Sim) repent() {
	h := s.liar.host
	if h == nil {
		return
	}
	s.liar.late = nil
	if h.agent != nil && h.agent.session != nil {
		h.agent.session.cut()
	}
	s.withTerm(nil, (*term).forgive)
}
