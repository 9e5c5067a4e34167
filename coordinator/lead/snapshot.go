package lead

import (
	"maps"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/whatif"
)

// This file lets others read the scheduling state outside of the leader's loop.

// AskWhatIf asks what would happen to an allocation, or to a job's first unit that
// waits; the result is a *Question.
type AskWhatIf struct{ Namespace, Name string }

func (r AskWhatIf) serve(l *Leader, c *call) {
	var u *unit
	if j := l.jobs[r.Namespace+"/"+r.Name]; j != nil {
		u = j.firstWaiting()
	} else {
		found, _, status := l.member(r.Namespace, r.Name)
		if status != nil {
			c.answer(nil, api.Errorf(404, "no allocation and no job %s found in namespace %s", r.Name, r.Namespace))
			return
		}
		u = found
	}
	c.answer(l.question(u), nil)
}

// Question is a question about a unit, with the scheduling state of the moment at
// which the question was asked. Any goroutine may answer it.
type Question struct {
	unit     whatif.Unit
	snapshot *whatif.Snapshot // nil for a unit that does not wait to be tried
}

// Answer answers the question; nil for a unit that does not wait to be tried, but
// runs, ends, or is on its way. Ahead counts the units in front of it, in classes that
// the leader is about to try.
func (q *Question) Answer() (a *whatif.Answer, ahead int) {
	if q.snapshot == nil {
		return nil, 0
	}
	answer := q.snapshot.World().Ask(&q.unit)
	return &answer, q.snapshot.Ahead(q.unit.Key)
}

// question prepares a question about a unit.
func (l *Leader) question(u *unit) *Question {
	if !u.waiting() || u.attempt != nil || u.isBeingAdopted() {
		return &Question{}
	}
	return &Question{l.asked(u), l.snapshot()}
}

// snapshot is the scheduling state as it is now.
func (l *Leader) snapshot() *whatif.Snapshot {
	s := &whatif.Snapshot{
		Nodes: l.occupied().Snapshot(), Limits: l.quotas.limits.Snapshot(), Trees: l.quotas.trees.Snapshot(), Forest: everyTree,
		Closed: maps.Clone(l.quotas.closed), MaxOps: l.maxOps, Waiting: make([]whatif.Waiting, 0, l.room.Len()),
	}
	for c := range l.room.Each() {
		u := l.units[c.First().Path]
		if u == nil {
			continue
		}
		w := whatif.Waiting{First: *u.wanted(), Units: c.Len()}
		w.First.Avoid = nil
		if e := c.Evidence(); e != nil {
			w.Asleep = e.Code
		}
		s.Waiting = append(s.Waiting, w)
	}
	return s
}

// asked is a unit as questions outside of the leader's loop see it.
func (l *Leader) asked(u *unit) whatif.Unit {
	l.updateRuntimes()
	l.bind(u)
	of := u.wanted()
	of.Avoid = maps.Clone(of.Avoid)
	return whatif.Unit{Unit: *of, Owner: string(u.record.Tenant), Kind: u.groups.Type, Unpreemptable: u.groups.Unpreemptable}
}
