package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// This file gives jobs a greater priority for a while (ADR 70). The priority is that of
// the job's units that wait: it is written into their records and places in the order,
// so all that depends on priorities follows. A unit that starts keeps it until the unit
// is back in the queue, so the end of a boost takes nothing away from a unit that runs.

// BoostJob raises the priority of a job's units that wait. Its result is an *api.Boost,
// once the boost is durable.
type BoostJob struct {
	Namespace, Name string
	Boost           api.BoostOptions
}

func (r BoostJob) serve(l *Leader, c *desk.Call) {
	previous := int32(0)
	l.changeNamedJob(c, r.Namespace, r.Name, func(j *work.Job) (change *jobChange, busy *work.Unit, status *api.Status) {
		if change, busy, status = l.changeOfBoost(j, r.Boost); change != nil {
			previous = change.moved[0].Record.Priority
		}
		return change, busy, status
	}, func(done *jobChange) any {
		return &api.Boost{
			PreviousPriority: previous, NewPriority: *done.priority,
			BoostExpires: shown.Instant(done.rec.Boost.UntilMillis), NewQueuePosition: l.positionOf(done.moved[0]),
		}
	})
}

// changeOfBoost makes the change of a boost, or names the unit that the change has to
// wait for, or the reason why it is refused.
func (l *Leader) changeOfBoost(j *work.Job, o api.BoostOptions) (change *jobChange, busy *work.Unit, status *api.Status) {
	rec := j.Record
	switch own := ownPriority(j); {
	case rec.Cancelled != nil:
		return nil, nil, api.Errorf(409, "job %s is ending: nothing of it is started any more", rec.Name).Because(api.FailedPrecondition)
	case o.NewPriority <= own:
		return nil, nil, api.Errorf(422, "newPriority: %d is not above %d, the priority of job %s: a boost raises the priority", o.NewPriority, own, rec.Name)
	}
	if status := l.barredFrom(rec.Namespace, o.NewPriority); status != nil {
		return nil, nil, status
	}
	rec.Boost = &record.Boost{
		Priority: o.NewPriority, UntilMillis: l.post.Millis() + o.Length().Milliseconds(), Reason: o.Reason, ApprovedBy: o.ApprovedBy,
	}
	change = &jobChange{job: j, rec: rec, doc: j.Doc, priority: &o.NewPriority}
	for _, u := range j.Units {
		switch {
		case !u.Waiting() || u.Life.EndAsked():
		case !u.IsAtRest():
			return nil, u, nil
		default:
			change.moved = append(change.moved, u)
		}
	}
	if len(change.moved) == 0 {
		return nil, nil, api.Errorf(409, "job %s is %s, and no member of it waits: a boost changes the place of members that wait", rec.Name, l.jobObject(j).Status.Phase).Because(api.FailedPrecondition)
	}
	return change, nil, l.fitsTxn(change)
}

// ownPriority is the priority in a job's document, which was checked when it was
// submitted.
func ownPriority(j *work.Job) int32 {
	return api.PriorityOf(j.Doc.Spec.Priority, j.Doc.Spec.PriorityClass)
}

// priorityOf is the priority of a unit of the job that enters the queue now.
func (l *Leader) priorityOf(j *work.Job) int32 {
	if b := j.Record.Boost; b != nil && !l.isBoostOver(b) {
		return b.Priority
	}
	return ownPriority(j)
}

// isBoostOver reports whether the end of a boost has come for every clock that may have
// written it.
func (l *Leader) isBoostOver(b *record.Boost) bool { return l.untilBoostOver(b) <= 0 }

func (l *Leader) untilBoostOver(b *record.Boost) time.Duration {
	return time.Duration(b.UntilMillis-l.post.Millis())*time.Millisecond + work.ClockError
}

// awaitBoostEnd sets the alarm for the end of a job's boost, in place of that of the boost
// before.
func (l *Leader) awaitBoostEnd(j *work.Job) {
	if b := j.Record.Boost; b != nil {
		l.awaitPriorities(j, max(0, l.untilBoostOver(b)))
	}
}

// awaitPriorities sets the only alarm that a job has for the priorities of its units.
func (l *Leader) awaitPriorities(j *work.Job, wait time.Duration) {
	j.AwaitPriorities(l.post, wait, func() { l.levelPriorities(j) })
}

// levelPriorities gives the units of a job that wait the priority that the job has now, as
// many as one Txn takes: its own one when a boost is over, and to a unit that came back into
// the queue while the priority changed. A unit that is just being placed is waited for.
func (l *Leader) levelPriorities(j *work.Job) {
	if j.Gone || l.work.Jobs[j.Record.Namespace+"/"+j.Record.Name] != j || api.Phase(j.Record.Phase).Ended() {
		return
	}
	if j.Stored == 0 || j.Writing {
		j.AddThen(func() { l.levelPriorities(j) })
		return
	}
	want, left := l.priorityOf(j), false
	change := &jobChange{job: j, rec: j.Record, doc: j.Doc, priority: &want}
	for _, u := range j.Units {
		switch {
		case !u.Waiting() || u.Life.EndAsked() || u.Record.Priority == want:
		case !u.IsAtRest() || opsOfJob+opsOfMoved*(len(change.moved)+1) > l.post.MaxOps():
			left = true // for the next round
		default:
			change.moved = append(change.moved, u)
		}
	}
	if b := j.Record.Boost; b != nil && !left && l.isBoostOver(b) {
		change.rec.Boost = nil
	}
	next := func() {
		if l.awaitBoostEnd(j); left {
			l.awaitPriorities(j, lastBackoff)
		}
	}
	if len(change.moved) == 0 && change.rec.Boost == j.Record.Boost {
		next()
		return
	}
	change.then = func(refused *api.Status) {
		if refused == nil {
			next()
			return
		}
		l.post.Warn("priorities_not_written", "job", j.Key(), "error", refused.Message)
		l.awaitPriorities(j, lastBackoff)
	}
	l.writeJobChange(change)
}

// isSameBoost compares two boosts of records.
func isSameBoost(a, b *record.Boost) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
