package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// showUnit makes the shown value of what is the same for all members of a unit.
func (l *Leader) showUnit(u *work.Unit) shown.Unit {
	s := shown.Unit{Record: &u.Record, Revision: u.Version(), Document: u.Allocation, Request: &u.Demand.Request}
	if u.Number > 0 {
		s.Alternative, s.Requested = u.Number, u.Requested()
	}
	if u.Job != nil {
		s.Job = u.Job.Doc
	}
	if u.Attempt != nil && !u.Waiting() {
		s.Places = u.Placements()
		s.Ending, s.Ready = u.ShownEnding(), u.Attempt.Ready.AtMillis
		s.Idle, s.IdleBelow = u.Attempt.Ready.IdleMillis, u.Attempt.Ready.IdleBelow
	}
	if s.Waiting = u.Wait.Told.Waiting; u.Stored == 0 { // nobody else shows it
		w := l.waitingNow(u)
		s.Waiting = &w
	}
	return s
}

// showMember makes the shown value of one member.
func (l *Leader) showMember(u *work.Unit, index int) shown.Member {
	m := shown.Member{Unit: l.showUnit(u), Index: index, Settled: !work.UnitWaiting(u)}
	m.FindLost(l.lossOf)
	if u.Group != nil {
		for _, mate := range u.Group.Units {
			if mate.Phase() == api.Running {
				m.Together++
			}
		}
	}
	switch {
	case m.Places != nil:
		at := m.Places[index]
		if n := l.nodes[at.Node]; n != nil {
			m.Host = n.hardware()
			m.Freed = u.Phase() == api.Terminating && l.freed(u.Attempt, at)
		}
	case u.Waiting():
		m.Position = l.positionOf(u)
	}
	return m
}

// freed reports whether a member that is ending holds its devices no more: the store
// says so, or a transaction that was committed later has some of them.
func (l *Leader) freed(a *work.Attempt, at shown.Place) bool {
	if record.HasFreed(a.Ready.Freed, at.Node) {
		return true
	}
	for tx, h := range l.nodes[at.Node].reservations {
		other := l.work.Attempts[tx]
		if other == nil || other.Committed <= a.Committed || other.Machine.Undecided() {
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
func (l *Leader) showJob(j *work.Job) shown.Job {
	s := shown.Job{Record: &j.Record, Revision: j.Stored, Document: j.Doc, Units: make([]shown.Unit, len(j.Units))}
	for i, u := range j.Units {
		s.Units[i] = l.showUnit(u)
		s.Units[i].FindLost(l.lossOf)
		if u.Waiting() && s.Position == 0 {
			s.Position = l.positionOf(u)
		}
	}
	first := j.Units[0]
	s.Settled = !work.UnitWaiting(first)
	return s
}

// terminating shows an allocation whose release is durable, gone or not. An
// allocation that is gone is shown as it was asked to end.
func (l *Leader) terminating(u *work.Unit) *api.Allocation {
	m := l.showMember(u, 0)
	if m.Phase() == api.Terminating {
		return m.Show()
	}
	return m.ShowEnded(shown.End{Millis: u.Life.Asked(), GraceSeconds: u.Life.Ending().GraceSeconds, Reason: u.Life.Ending().Reason})
}
