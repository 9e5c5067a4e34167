package txn

import "github.com/musterd/muster/resource"

// This file has the steps of an evicted transaction, COMMITTED → EVICTING, with
// or without a preemptor.

func (m *Machine) evictAsked(in EvictAsked) []Effect {
	switch {
	case m.state == Committed:
	case m.losing != "" && m.notice == nil && (m.state == Losing || m.state == Reading): // as soon as that is answered
		m.notice = &in
		return nil
	default:
		return nil
	}
	m.notice = &in
	return m.resume()
}

func (m *Machine) evictingAnswered(in EvictingAnswered) []Effect {
	if m.state != Noticing {
		return nil
	}
	if in.Outcome != Landed {
		return m.read()
	}
	return m.underNotice(*m.notice, in.Revision)
}

// claimed hands the record over to a preemptor.
func (m *Machine) claimed(in VictimClaimed) []Effect {
	if m.state == Committed {
		m.state, m.by = Claimed, in.By
	}
	return nil
}

func (m *Machine) evicted(in Evicted) []Effect {
	if m.state != Claimed {
		return nil
	}
	return m.underNotice(EvictAsked{in.GraceSeconds, in.Reason}, in.Revision)
}

// underNotice enters Evicting, and goes on to a release that was requested in
// the meantime.
func (m *Machine) underNotice(notice EvictAsked, revision resource.Revision) []Effect {
	m.state, m.notice, m.revision = Evicting, &notice, revision
	effects := append([]Effect{AckEvicting{revision, notice.GraceSeconds, notice.Reason}}, m.tellEvict()...)
	if m.release != nil && m.by == "" {
		return append(effects, m.end()...)
	}
	return append(effects, m.vacated()...)
}

// displaced ends a victim with the commit of its preemptor.
func (m *Machine) displaced(in Displaced) []Effect {
	if m.by == "" || m.state != Evicting {
		return nil
	}
	return m.released(in.Revision)
}

// preemptorAborted takes the record back from the preemptor: an EVICTING record
// ends all the same, a COMMITTED record stays.
func (m *Machine) preemptorAborted(in PreemptorAborted) []Effect {
	if m.by != in.By {
		return nil
	}
	switch m.state {
	case Claimed:
		m.by = ""
		if in.InDoubt {
			return m.read()
		}
		return m.resume()
	case Evicting:
		m.by = ""
		if m.release != nil {
			return m.end()
		}
		return m.vacated()
	}
	return nil
}

func (m *Machine) tellEvict() []Effect {
	effects := make([]Effect, 0, len(m.parts))
	for _, p := range m.parts {
		if !p.freed {
			effects = append(effects, m.sendEvict(p.node))
		}
	}
	return effects
}

func (m *Machine) sendEvict(n resource.NodeID) Effect {
	return SendEvict{Node: n, GraceSeconds: m.notice.GraceSeconds, Reason: m.notice.Reason}
}
