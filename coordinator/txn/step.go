package txn

import "github.com/musterd/muster/resource"

// Step applies an input and returns what to do, in order. An input that does
// not apply in the present state returns nothing.
func (m *Machine) Step(in Input) []Effect {
	switch in := in.(type) {
	case Voted:
		return m.voted(in)
	case Refused:
		return m.refused(in)
	case BudgetSpent:
		if m.state == Reserving {
			return m.fence()
		}
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
	case Freed:
		return m.nodeFreed(in)
	case ReleasedAnswered:
		return m.releasedAnswered(in)
	case Reconnected:
		return m.reconnected(in)
	}
	return nil
}

// voted counts a Yes. A later Yes of the same node replaces the earlier one:
// it is of a newer incarnation, or the same. One without a registration is no
// promise: the commit could compare nothing with it.
func (m *Machine) voted(in Voted) []Effect {
	p := m.part(in.Node)
	if p == nil || m.state != Reserving || in.Vote.Revision <= 0 {
		return nil
	}
	p.voted, p.vote = true, in.Vote
	for i := range m.parts { // model: mutant PARTIAL_VOTE
		if !m.parts[i].voted {
			return nil
		}
	}
	m.state = Committing
	m.commitInDoubt = true
	return []Effect{WriteCommit{}}
}

func (m *Machine) refused(in Refused) []Effect {
	if m.part(in.Node) == nil || m.state != Reserving {
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

// committed enters Committed, and goes on to the release that was asked for in
// the meantime.
func (m *Machine) committed(revision resource.Revision) []Effect {
	m.state, m.revision, m.commitInDoubt = Committed, revision, false
	effects := append([]Effect{AckCommitted{revision}}, m.tellCommit()...) // model: mutant ACK_BEFORE_COMMIT
	if m.release != nil {
		effects = append(effects, m.end()...)
	}
	return effects
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

// recordRead obeys the record. What an absent one means depends on which write
// is in doubt: before a commit it is fenced, after a release it is collected.
// A read from before the latest known write is of an earlier question.
func (m *Machine) recordRead(in RecordRead) []Effect {
	if m.state != Reading || in.Revision < m.revision {
		return nil
	}
	wasCommitted := m.revision != 0
	switch in.State {
	case RecordAbsent:
		if wasCommitted {
			return m.released(in.Revision)
		}
		return m.fence() // model: mutant ABSENT_IS_AN_OUTCOME
	case RecordAborted:
		// A commit Txn without an answer stays in doubt: it could still land if
		// this record were collected.
		return m.aborted()
	case RecordCommitted:
		if wasCommitted && m.release != nil {
			m.revision = in.Revision // another may have written it since
			return m.end()
		}
		return m.committed(in.Revision)
	case RecordReleasing:
		m.state, m.revision = Releasing, in.Revision
		if m.release == nil {
			m.release = &ReleaseAsked{}
		}
		if m.allFreed() {
			m.state = Closing
			return []Effect{WriteReleased{}}
		}
		return append([]Effect{AckReleasing{in.Revision}}, m.tellRelease()...)
	case RecordReleased:
		return m.released(in.Revision)
	}
	return nil
}

func (m *Machine) releaseAsked(in ReleaseAsked) []Effect {
	if m.release != nil {
		return nil
	}
	switch m.state {
	case Committed:
		m.release = &in
		return m.end()
	case Reserving:
		m.release = &in
		return m.fence()
	case Committing, Fencing, Reading:
		m.release = &in
	case Ending, Releasing, Closing, Released, Aborted:
	}
	return nil
}

func (m *Machine) end() []Effect {
	m.state = Ending
	return []Effect{WriteReleasing{m.release.GraceSeconds, m.release.Reason}}
}

func (m *Machine) releasingAnswered(in ReleasingAnswered) []Effect {
	if m.state != Ending {
		return nil
	}
	if in.Outcome != Landed {
		return m.read()
	}
	m.state, m.revision = Releasing, in.Revision
	return append([]Effect{AckReleasing{in.Revision}}, m.tellRelease()...)
}

func (m *Machine) nodeFreed(in Freed) []Effect {
	p := m.part(in.Node)
	if p == nil || (m.state != Releasing && m.state != Closing) {
		return nil
	}
	p.freed = true
	if m.state == Closing || !m.allFreed() { // model: mutant END_BEFORE_FREED
		return nil
	}
	m.state = Closing
	return []Effect{WriteReleased{}}
}

func (m *Machine) allFreed() bool {
	for _, p := range m.parts {
		if !p.freed {
			return false
		}
	}
	return true
}

func (m *Machine) releasedAnswered(in ReleasedAnswered) []Effect {
	if m.state != Closing {
		return nil
	}
	if in.Outcome != Landed {
		return m.read()
	}
	return m.released(in.Revision)
}

func (m *Machine) released(revision resource.Revision) []Effect {
	m.state, m.revision = Released, revision
	effects := make([]Effect, 0, len(m.parts)+1)
	for _, p := range m.parts {
		effects = append(effects, SendForget{p.node})
	}
	return append(effects, AckReleased{})
}

// reconnected repeats what the node must know: every command may be repeated
// any number of times.
func (m *Machine) reconnected(in Reconnected) []Effect {
	p := m.part(in.Node)
	if p == nil {
		return nil
	}
	switch m.state {
	case Reserving:
		if !p.voted {
			return []Effect{SendReserve{p.node}}
		}
	case Committed:
		return []Effect{SendCommit{p.node, m.revision}}
	case Releasing:
		if !p.freed {
			return []Effect{m.sendRelease(p.node)}
		}
	case Aborted:
		return []Effect{SendAbort{p.node}}
	case Released:
		return []Effect{SendForget{p.node}}
	case Committing, Fencing, Reading, Ending, Closing:
	}
	return nil
}

func (m *Machine) tellCommit() []Effect {
	effects := make([]Effect, 0, len(m.parts))
	for _, p := range m.parts {
		effects = append(effects, SendCommit{p.node, m.revision})
	}
	return effects
}

func (m *Machine) tellRelease() []Effect {
	effects := make([]Effect, 0, len(m.parts))
	for _, p := range m.parts {
		if !p.freed {
			effects = append(effects, m.sendRelease(p.node))
		}
	}
	return effects
}

func (m *Machine) sendRelease(n resource.NodeID) Effect {
	return SendRelease{Node: n, GraceSeconds: m.release.GraceSeconds, Reason: m.release.Reason}
}
