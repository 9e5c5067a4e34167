package lead

import (
	"time"

	"github.com/musterd/muster/api"
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

func (r BoostJob) serve(l *Leader, c *call) {
	j, status := l.findJob(r.Namespace, r.Name)
	if status != nil {
		c.answer(nil, status)
		return
	}
	l.answerBy(c, patchPatience, func() {
		c.answer(nil, api.Errorf(503, "job %s: a member is just being placed, or the job is being written; ask again", r.Name))
	})
	l.boostJob(c, j, r.Boost)
}

// boostJob boosts a job once no other Txn writes its key, and none the units that wait.
func (l *Leader) boostJob(c *call, j *job, o api.BoostOptions) {
	defer l.actFor(c)()
	switch {
	case c.over:
		return
	case j.gone:
		c.answer(nil, NotFound("job", j.record.Namespace, j.record.Name))
		return
	case j.stored == 0 || j.writing:
		j.addThen(func() { l.boostJob(c, j, o) })
		return
	}
	change, busy, status := l.changeOfBoost(j, o)
	switch {
	case status != nil:
		c.answer(nil, status)
		return
	case busy != nil:
		l.waitForChange(c, busy, func() bool {
			l.boostJob(c, j, o)
			return true
		})
		return
	}
	c.begun = true
	first := change.moved[0]
	previous := first.record.Priority
	change.then = func(refused *api.Status) {
		if refused != nil {
			c.answer(nil, refused)
			return
		}
		l.awaitBoostEnd(j)
		c.answer(&api.Boost{
			PreviousPriority: previous, NewPriority: o.NewPriority,
			BoostExpires: shown.Instant(change.rec.Boost.UntilMillis), NewQueuePosition: l.positionOf(first),
		}, nil)
	}
	l.writeJobChange(change)
}

// changeOfBoost makes the change of a boost, or names the unit that the change has to
// wait for, or the reason why it is refused.
func (l *Leader) changeOfBoost(j *job, o api.BoostOptions) (change *jobChange, busy *unit, status *api.Status) {
	rec := j.record
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
		Priority: o.NewPriority, UntilMillis: l.millis() + o.Length().Milliseconds(), Reason: o.Reason, ApprovedBy: o.ApprovedBy,
	}
	change = &jobChange{job: j, rec: rec, doc: j.doc, priority: &o.NewPriority}
	for _, u := range j.units {
		switch {
		case !u.waiting() || u.ending != nil:
		case !u.isAtRest():
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
func ownPriority(j *job) int32 {
	p, _ := api.PriorityOf(j.doc.Spec.Priority, j.doc.Spec.PriorityClass)
	return p
}

// priorityOf is the priority of a unit of the job that enters the queue now.
func (l *Leader) priorityOf(j *job) int32 {
	if b := j.record.Boost; b != nil && !l.isBoostOver(b) {
		return b.Priority
	}
	return ownPriority(j)
}

// isBoostOver reports whether the end of a boost has come for every clock that may have
// written it.
func (l *Leader) isBoostOver(b *record.Boost) bool { return l.untilBoostOver(b) <= 0 }

func (l *Leader) untilBoostOver(b *record.Boost) time.Duration {
	return time.Duration(b.UntilMillis-l.millis())*time.Millisecond + clockError
}

// awaitBoostEnd sets the alarm for the end of a job's boost.
func (l *Leader) awaitBoostEnd(j *job) {
	if b := j.record.Boost; b != nil {
		l.after(max(0, l.untilBoostOver(b)), func() { l.endBoost(j) })
	}
}

// endBoost gives the units of a job that still wait the job's own priority again, as
// many as one Txn takes, once the boost is over. A unit that is just being placed is
// waited for.
func (l *Leader) endBoost(j *job) {
	b := j.record.Boost
	if b == nil || j.gone || l.jobs[j.record.Namespace+"/"+j.record.Name] != j || api.Phase(j.record.Phase).Ended() {
		return
	}
	if !l.isBoostOver(b) { // a later boost has an alarm of its own
		return
	}
	if j.stored == 0 || j.writing {
		j.addThen(func() { l.endBoost(j) })
		return
	}
	own := ownPriority(j)
	change := &jobChange{job: j, rec: j.record, doc: j.doc, priority: &own}
	change.rec.Boost = nil
	for _, u := range j.units {
		switch {
		case !u.waiting() || u.ending != nil || u.record.Priority == own:
		case !u.isAtRest() || opsOfJob+opsOfMoved*(len(change.moved)+1) > l.maxOps:
			change.rec.Boost = b // for the next round
		default:
			change.moved = append(change.moved, u)
		}
	}
	if change.rec.Boost != nil {
		l.after(lastBackoff, func() { l.endBoost(j) })
		if len(change.moved) == 0 {
			return
		}
	}
	change.then = func(refused *api.Status) {
		if refused != nil {
			l.out.warn("boost_end_not_written", "job", j.key(), "error", refused.Message)
			l.after(lastBackoff, func() { l.endBoost(j) })
		}
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
