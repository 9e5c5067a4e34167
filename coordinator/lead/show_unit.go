package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// showUnit makes the shown value of what is the same for all members of a unit.
func (l *Leader) showUnit(u *unit) shown.Unit {
	s := shown.Unit{Record: &u.record, Revision: u.version(), Document: u.allocation, Request: &u.Demand.Request}
	if u.number > 0 {
		s.Alternative, s.Requested = u.number, u.requested()
	}
	if u.job != nil {
		s.Job = u.job.doc
	}
	if u.attempt != nil && !u.waiting() {
		s.Places = u.placements()
		s.Ending, s.Ready = u.shownEnding(), u.attempt.ready.AtMillis
		s.Idle, s.IdleBelow = u.attempt.ready.IdleMillis, u.attempt.ready.IdleBelow
	}
	if s.Waiting = u.told.waiting; u.stored == 0 { // nobody else shows it
		w := l.waitingNow(u)
		s.Waiting = &w
	}
	return s
}

// shownEnding is the end that the unit's keys have; zero for none.
func (u *unit) shownEnding() (e shown.Ending) {
	if a := u.attempt; a.notice != nil {
		e.Notice = &shown.End{Millis: post.MillisOf(a.noticed), GraceSeconds: a.notice.GraceSeconds, Reason: a.notice.Reason}
	}
	if u.life.EndDurable() {
		e.Asked = &shown.End{Millis: u.life.Asked(), GraceSeconds: u.life.Ending().GraceSeconds, Reason: u.life.Ending().Reason}
	}
	return e
}

// showMember makes the shown value of one member.
func (l *Leader) showMember(u *unit, index int) shown.Member {
	m := shown.Member{Unit: l.showUnit(u), Index: index, Settled: !unitWaiting(u)}
	m.FindLost(l.lossOf)
	if u.group != nil {
		for _, mate := range u.group.units {
			if mate.phase() == api.Running {
				m.Together++
			}
		}
	}
	switch {
	case m.Places != nil:
		at := m.Places[index]
		if n := l.nodes[at.Node]; n != nil {
			m.Host = n.hardware()
			m.Freed = u.phase() == api.Terminating && l.freed(u.attempt, at)
		}
	case u.waiting():
		m.Position = l.positionOf(u)
	}
	return m
}

// freed reports whether a member that is ending holds its devices no more: the store
// says so, or a transaction that was committed later has some of them.
func (l *Leader) freed(a *attempt, at shown.Place) bool {
	if record.HasFreed(a.ready.Freed, at.Node) {
		return true
	}
	for tx, h := range l.nodes[at.Node].reservations {
		other := l.work.attempts[tx]
		if other == nil || other.committed <= a.committed || other.machine.Undecided() {
			continue
		}
		for _, m := range h.members {
			if shown.Excludes(at.Assignment, m.Assignment) {
				return true
			}
		}
	}
	return false
}

// showJob makes the shown value of a job and its units.
func (l *Leader) showJob(j *job) shown.Job {
	s := shown.Job{Record: &j.record, Revision: j.stored, Document: j.doc, Units: make([]shown.Unit, len(j.units))}
	for i, u := range j.units {
		s.Units[i] = l.showUnit(u)
		s.Units[i].FindLost(l.lossOf)
		if u.waiting() && s.Position == 0 {
			s.Position = l.positionOf(u)
		}
	}
	first := j.units[0]
	s.Settled = !unitWaiting(first)
	return s
}

// terminating shows an allocation whose release is durable, gone or not. An
// allocation that is gone is shown as it was asked to end.
func (l *Leader) terminating(u *unit) *api.Allocation {
	m := l.showMember(u, 0)
	if m.Phase() == api.Terminating {
		return m.Show()
	}
	return m.ShowEnded(shown.End{Millis: u.life.Asked(), GraceSeconds: u.life.Ending().GraceSeconds, Reason: u.life.Ending().Reason})
}
