package txn

// This file has the steps of a preemptor between the answers of its nodes and its
// commit (PROTOCOL.md 6.3 to 6.5).

// allAnswered reports whether every node answered Yes or Waiting: only then
// are victims evicted.
func (m *Machine) allAnswered() bool {
	for i := range m.parts { // model: mutant EVICT_BEFORE_ALL_WAIT
		if !m.parts[i].answered {
			return false
		}
	}
	return true
}

// evictionsAnswered: without a definite answer, or after a conflict, the
// attempt is given up. Once ABORTED is durable the Txn can land no more, and
// each victim's record has the outcome.
func (m *Machine) evictionsAnswered(in EvictionsAnswered) []Effect {
	if m.state != Clearing {
		return nil
	}
	if in.Outcome == Unknown {
		return m.fence()
	}
	m.evictionsInDoubt = false
	if in.Outcome == Conflict {
		return m.fence()
	}
	m.state = Displacing
	effects := []Effect{AckEvictions{in.Revision}}
	if m.release != nil {
		return append(effects, m.fence()...)
	}
	// Agents that wait have more patience from here on.
	effects = append(effects, m.tellReserve()...)
	return append(effects, m.advance()...)
}

func (m *Machine) victimFreed(in VictimFreed) []Effect {
	for i := range m.victims {
		if m.victims[i].tx == in.Tx {
			m.victims[i].freed = true
		}
	}
	return m.advance()
}

// cleared reports whether every victim is freed on all its nodes, those that
// this transaction does not use included.
func (m *Machine) cleared() bool {
	for _, v := range m.victims { // model: mutant SWAP_BEFORE_FREED
		if !v.freed {
			return false
		}
	}
	return true
}
