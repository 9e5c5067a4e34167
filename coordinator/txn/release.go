package txn

import "github.com/musterd/muster/resource"

// This file ends a committed transaction: COMMITTED or EVICTING → RELEASING →
// RELEASED.

func (m *Machine) releaseAsked(in ReleaseAsked) []Effect {
	if m.release != nil {
		return nil
	}
	m.release = &in
	switch m.state {
	case Reserving, Displacing:
		return m.fence()
	case Committed:
		return m.end()
	case Evicting:
		if m.by == "" {
			return m.end()
		}
	case Clearing, Committing, Fencing, Reading, Losing, Claimed, Noticing:
		// as soon as that is answered
	case Ending, Releasing, Closing, Released, Aborted:
	}
	return nil
}

func (m *Machine) end() []Effect {
	m.state = Ending
	if m.notice != nil { // the grace of the notice runs; an owner makes none longer
		m.release.Kept = false
	}
	return []Effect{WriteReleasing(*m.release)}
}

func (m *Machine) releasingAnswered(in ReleasingAnswered) []Effect {
	if m.state != Ending {
		return nil
	}
	if in.Outcome != Landed {
		return m.read()
	}
	return m.releasing(in.Revision)
}

// releasing enters Releasing, or passes it where all is freed already.
func (m *Machine) releasing(revision resource.Revision) []Effect {
	m.state, m.revision, m.by = Releasing, revision, ""
	var effects []Effect
	if !m.releaseAcked {
		m.releaseAcked = true
		effects = append(effects, AckReleasing{revision, m.release.Evicted})
	}
	return append(append(effects, m.tellRelease()...), m.vacated()...)
}

func (m *Machine) nodeFreed(in Freed) []Effect {
	p := m.part(in.Node)
	if p == nil || p.freed {
		return nil
	}
	switch m.state {
	case Evicting, Ending, Releasing, Closing:
		p.freed = true
		return m.vacated()
	default:
		return nil
	}
}

// vacated goes on once every node has freed its members.
func (m *Machine) vacated() []Effect {
	if !m.Freed() {
		return nil
	}
	switch {
	case m.state == Evicting && m.by != "":
		return []Effect{AckFreed{}}
	case m.state == Evicting:
		m.release = &ReleaseAsked{GraceSeconds: m.notice.GraceSeconds, Reason: m.notice.Reason, Evicted: true}
		return m.end()
	case m.state == Releasing:
		m.state = Closing
		return []Effect{WriteReleased{}}
	}
	return nil
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
	m.state, m.revision, m.by = Released, revision, ""
	effects := make([]Effect, 0, len(m.parts)+1)
	for _, p := range m.parts {
		effects = append(effects, SendForget{p.node})
	}
	return append(effects, AckReleased{})
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
	if m.release.Kept {
		return SendEvict{Node: n, GraceSeconds: m.release.GraceSeconds, Reason: m.release.Reason}
	}
	return SendRelease{Node: n, GraceSeconds: m.release.GraceSeconds, Reason: m.release.Reason}
}
