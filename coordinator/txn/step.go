package txn

import (
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Step applies an input and returns the effects, in order. An input that does
// not apply in the present state has no effect.
func (m *Machine) Step(in Input) []Effect {
	switch in := in.(type) {
	case Voted:
		return m.answered(in.Node, in.Vote, true)
	case Waited:
		return m.answered(in.Node, in.Vote, false)
	case Refused:
		return m.refused(in)
	case BudgetSpent:
		if m.state == Reserving || m.state == Displacing {
			return m.fence()
		}
	case EvictionsAnswered:
		return m.evictionsAnswered(in)
	case VictimFreed:
		return m.victimFreed(in)
	case CommitAnswered:
		return m.commitAnswered(in)
	case FenceAnswered:
		return m.fenceAnswered(in)
	case RecordRead:
		return m.recordRead(in)
	case ReleaseAsked:
		return m.releaseAsked(in)
	case ReleasingAnswered:
		return m.releasingAnswered(in)
	case EvictAsked:
		return m.evictAsked(in)
	case EvictingAnswered:
		return m.evictingAnswered(in)
	case NodeLost:
		return m.nodeLost(in)
	case LossAnswered:
		return m.lossAnswered(in)
	case VictimClaimed:
		return m.claimed(in)
	case Evicted:
		return m.evicted(in)
	case Displaced:
		return m.displaced(in)
	case PreemptorAborted:
		return m.preemptorAborted(in)
	case Freed:
		return m.nodeFreed(in)
	case Returned:
		m.returned(in)
	case ReleasedAnswered:
		return m.releasedAnswered(in)
	case Reconnected:
		return m.reconnected(in)
	}
	return nil
}

// answered counts a Yes or a Waiting. A later answer of the same node replaces
// the earlier answer: it is of a newer incarnation, or the Yes after a Waiting. An
// answer without a registration is no promise: the Txns have no revision to compare.
func (m *Machine) answered(node resource.NodeID, vote Vote, yes bool) []Effect {
	p := m.part(node)
	if p == nil || vote.Revision <= 0 || !yes && len(m.victims) == 0 {
		return nil
	}
	switch m.state {
	case Reserving, Clearing, Displacing:
	default:
		return nil
	}
	if p.answered && (vote.Revision < p.vote.Revision || vote.Revision == p.vote.Revision && p.voted) {
		return nil
	}
	p.answered, p.voted, p.vote = true, yes, vote
	return m.advance()
}

// advance goes on to the next Txn of an undecided transaction, if all its
// conditions hold.
func (m *Machine) advance() []Effect {
	switch {
	case m.state == Reserving && len(m.victims) > 0 && m.allAnswered():
		m.state = Clearing
		m.evictionsInDoubt = true
		return []Effect{WriteEvictions{}}
	case m.state == Reserving && len(m.victims) == 0 && m.allVoted(), m.state == Displacing && m.allVoted() && m.cleared():
		m.state = Committing
		m.commitInDoubt = true
		return []Effect{WriteCommit{}}
	}
	return nil
}

func (m *Machine) allVoted() bool {
	for i := range m.parts { // model: mutant PARTIAL_VOTE
		if !m.parts[i].voted {
			return false
		}
	}
	return true
}

func (m *Machine) refused(in Refused) []Effect {
	if m.part(in.Node) == nil || m.state != Reserving && m.state != Displacing {
		return nil
	}
	m.refusals = append(m.refusals, in)
	return m.fence()
}

func (m *Machine) fence() []Effect {
	m.state = Fencing
	return []Effect{WriteAborted{}}
}

func (m *Machine) read() []Effect {
	m.state = Reading
	return []Effect{ReadRecord{}}
}

func (m *Machine) commitAnswered(in CommitAnswered) []Effect {
	if m.state != Committing {
		return nil
	}
	switch in.Outcome {
	case Landed:
		return m.committed(in.Revision)
	case Conflict:
		m.commitInDoubt = false // it did not land and was sent once
	case Unknown:
		// never Abort: read; whichever Txn lands first decides
	}
	return m.read()
}

// committed enters Committed, and goes on to a release that was requested in
// the meantime.
func (m *Machine) committed(revision resource.Revision) []Effect {
	m.state, m.revision, m.commitInDoubt, m.evictionsInDoubt = Committed, revision, false, false
	effects := append([]Effect{AckCommitted{revision}}, m.tellCommit()...) // model: mutant ACK_BEFORE_COMMIT
	return append(effects, m.resume()...)
}

// resume goes on with a release or an eviction that was requested while the record
// was COMMITTED and another step was under way.
func (m *Machine) resume() []Effect {
	m.state = Committed
	switch {
	case m.release != nil:
		return m.end()
	case m.notice != nil:
		m.state = Noticing
		return []Effect{WriteEvicting(*m.notice)}
	case m.losing != "":
		m.state = Losing
		return []Effect{WriteLoss{m.losing}}
	}
	return nil
}

func (m *Machine) fenceAnswered(in FenceAnswered) []Effect {
	if m.state != Fencing {
		return nil
	}
	if in.Outcome == Landed {
		return m.aborted()
	}
	return m.read()
}

func (m *Machine) aborted() []Effect {
	m.state = Aborted
	effects := make([]Effect, 0, len(m.parts)+1)
	for _, p := range m.parts {
		effects = append(effects, SendAbort{p.node})
	}
	return append(effects, AckAborted{})
}

// recordRead obeys the record. The meaning of an absent record depends on the write
// in doubt: before a commit the record is fenced, after a release it was collected.
// A read that is older than the latest acknowledged write is ignored.
func (m *Machine) recordRead(in RecordRead) []Effect {
	if m.state != Reading || in.Revision < m.revision {
		return nil
	}
	wasCommitted := m.revision != 0
	lost := m.loses(in.Lost, in.Revision)
	return append(lost, m.obey(in, wasCommitted)...)
}

// obey continues where a record is.
func (m *Machine) obey(in RecordRead, wasCommitted bool) []Effect {
	switch in.State {
	case grant.RecordAbsent:
		if wasCommitted {
			return m.released(in.Revision)
		}
		return m.fence() // model: mutant ABSENT_IS_AN_OUTCOME
	case grant.RecordAborted:
		// A commit Txn without an answer stays in doubt: it could still land if
		// this record were collected.
		return m.aborted()
	case grant.RecordCommitted:
		if wasCommitted {
			m.revision = in.Revision // another may have written it since
			if effects := m.resume(); m.state != Committed {
				return effects
			}
			return m.tellCommit() // a stream may have begun during the read
		}
		return m.committed(in.Revision)
	case grant.RecordEvicting:
		m.by = in.By
		return m.underNotice(EvictAsked{in.GraceSeconds, in.Reason}, in.Revision)
	case grant.RecordReleasing:
		if m.release == nil {
			m.release = &ReleaseAsked{}
		}
		return m.releasing(in.Revision)
	case grant.RecordReleased:
		return m.released(in.Revision)
	}
	return nil
}

// reconnected repeats the commands that the node must have received: every command
// may be repeated any number of times.
func (m *Machine) reconnected(in Reconnected) []Effect {
	p := m.part(in.Node)
	if p == nil {
		return nil
	}
	switch m.state {
	case Reserving, Clearing:
		if !p.voted {
			return []Effect{SendReserve{p.node}}
		}
	case Displacing: // a Yes may have been lost with an incarnation
		return []Effect{SendReserve{p.node}}
	case Committed, Losing, Claimed:
		return []Effect{SendCommit{p.node, m.revision}}
	case Evicting:
		if !p.freed {
			return []Effect{m.sendEvict(p.node)}
		}
	case Releasing:
		if !p.freed {
			return []Effect{m.sendRelease(p.node)}
		}
	case Aborted:
		return []Effect{SendAbort{p.node}}
	case Released:
		return []Effect{SendForget{p.node}}
	case Committing, Fencing, Reading, Noticing, Ending, Closing:
	}
	return nil
}

func (m *Machine) tellReserve() []Effect {
	effects := make([]Effect, 0, len(m.parts))
	for _, p := range m.parts {
		if !p.voted {
			effects = append(effects, SendReserve{p.node})
		}
	}
	return effects
}

func (m *Machine) tellCommit() []Effect {
	effects := make([]Effect, 0, len(m.parts))
	for _, p := range m.parts {
		effects = append(effects, SendCommit{p.node, m.revision})
	}
	return effects
}
