package lead

import (
	"bytes"
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// jobChange is a change of a job's document or of its boost, with the units that it
// gives another place in the order and those that it adds. One Txn writes all of it.
type jobChange struct {
	job      *job
	rec      record.Job // to be written
	doc      *api.Job
	queue    string  // of moved, "": as it is
	priority *int32  // of moved, nil: as it is
	moved    []*unit // that wait
	added    []*unit
	// then runs when the change has landed or was refused; nil: nothing is to follow.
	then func(refused *api.Status)
}

// placed is the record of a moved unit at its new place.
func (c *jobChange) placed(unit record.Unit) record.Unit {
	unit.Queue = cmp.Or(c.queue, unit.Queue)
	if c.priority != nil {
		unit.Priority = *c.priority
	}
	return unit
}

// changeNamedJob serves a request that changes a job. build makes the change, or names the
// unit that the change has to wait for, or the reason why it is refused; result is the
// answer once the change is durable.
func (l *Leader) changeNamedJob(c *desk.Call, namespace, name string, build func(*job) (*jobChange, *unit, *api.Status), result func(*jobChange) any) {
	j, status := l.findJob(namespace, name)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	c.AnswerBy(patchPatience, func() {
		c.Answer(nil, api.Errorf(503, "job %s: a member is just being placed, or the job is being written; ask again", name))
	})
	l.changeJob(c, j, build, result)
}

// changeJob changes a job once no other Txn writes its key, and none the units that the
// change writes.
func (l *Leader) changeJob(c *desk.Call, j *job, build func(*job) (*jobChange, *unit, *api.Status), result func(*jobChange) any) {
	defer c.Act()()
	switch {
	case c.IsOver():
		return
	case j.gone:
		c.Answer(nil, NotFound("job", j.record.Namespace, j.record.Name))
		return
	case j.stored == 0 || j.writing:
		j.addThen(func() { l.changeJob(c, j, build, result) })
		return
	}
	change, busy, status := build(j)
	switch {
	case status != nil:
		c.Answer(nil, status)
	case busy != nil:
		c.WaitForChange(changesOf(busy), func() bool {
			l.changeJob(c, j, build, result)
			return true
		})
	default:
		c.Begin()
		change.then = func(refused *api.Status) {
			if refused != nil {
				c.Answer(nil, refused)
				return
			}
			c.Answer(result(change), nil)
		}
		l.writeJobChange(change)
	}
}

// changeOfJob makes the change of a patch, or names the unit that the change has to
// wait for, or the reason why it is refused.
func (l *Leader) changeOfJob(j *job, p api.WorkPatch) (change *jobChange, busy *unit, status *api.Status) {
	if status := checkJob(j, &p.Preconditions); status != nil {
		return nil, nil, status
	}
	raw, doc, status := p.PatchedJob(j.record.Document, j.doc, j.record.Admitted.Fill)
	if status != nil {
		return nil, nil, status
	}
	change = &jobChange{job: j, rec: j.record, doc: doc}
	change.rec.Document = raw
	if !doc.IsSuspended() {
		change.rec.Suspended = ""
	}
	if p.Spec != nil && j.record.Cancelled != nil {
		return nil, nil, api.Errorf(409, "job %s is ending: its spec stays as it is", j.record.Name).Because(api.FailedPrecondition)
	}
	if doc.Spec.Queue != j.doc.Spec.Queue {
		if busy, status = l.moveUnits(change); busy != nil || status != nil {
			return nil, busy, status
		}
	}
	if status = l.resize(change); status == nil {
		status = l.hasRoomFor(j.record.Namespace, l.growthOf(change))
	}
	if status == nil {
		status = l.fitsTxn(change)
	}
	if status == nil {
		status = l.refusesMove(change)
	}
	return change, nil, status
}

// moveUnits adds all units of the job to those that change their queue. A unit that
// an attempt is under way for is to be waited for.
func (l *Leader) moveUnits(change *jobChange) (busy *unit, status *api.Status) {
	j := change.job
	change.queue = l.queueOf(j.record.Namespace, change.doc.Spec.Queue)
	for _, u := range j.units {
		switch {
		case u.isSurplus() && u.phase().Ended():
		case !u.waiting():
			return nil, isPlaced("member "+u.memberName(0)+" of job "+j.record.Name, u)
		case !u.isAtRest():
			return u, nil
		case u.record.Queue != change.queue:
			change.moved = append(change.moved, u)
		}
	}
	return nil, nil
}

// refusesMove refuses a change that brings more members into a queue than its rules let
// in. Members that wait in the queue already stay there.
func (l *Leader) refusesMove(change *jobChange) *api.Status {
	members, together := len(change.added), 1
	for _, u := range change.moved {
		members, together = members+u.record.Members, max(together, u.record.Members)
	}
	if members == 0 {
		return nil
	}
	namespace := change.rec.Namespace
	return l.refusesEntry(namespace, l.queueOf(namespace, change.doc.Spec.Queue), change.doc.Spec.Queue != "", members, together)
}

// fitsTxn refuses a change that one transaction of the store cannot hold.
func (l *Leader) fitsTxn(change *jobChange) *api.Status {
	ops := opsOfJob + opsOfMoved*len(change.moved) + opsOfAdded*len(change.added)
	if ops <= l.post.MaxOps() {
		return nil
	}
	field := "spec.parallelism"
	switch {
	case change.priority != nil:
		field = "newPriority"
	case len(change.moved) > 0:
		field = "spec.queue"
	}
	return api.Errorf(422, "%s: the change moves %d units and adds %d: storing it takes %d operations, the store takes %d in one transaction",
		field, len(change.moved), len(change.added), ops, l.post.MaxOps())
}

// writeJobChange writes a change. The moved and the added units are held until the
// store has answered.
func (l *Leader) writeJobChange(change *jobChange) {
	j, rec := change.job, change.rec
	key := record.JobKey(rec.Namespace, rec.Name)
	d := post.Decision{
		Compares: []record.Compare{record.ModRevIs(key, j.stored)},
		Ops:      []record.Op{record.Put(key, record.MustEncode(rec))},
	}
	j.beginWrite()
	l.census.set(j.units[0], count.OfUnit(&j.units[0].record, nil).Plus(count.OfJob(&rec, change.doc)))
	for _, u := range change.moved {
		u.life.Begin(work.WriteChange)
		l.offer(u)
		at, unit := u.record.Path().Key(), change.placed(u.record)
		d.Compares = append(d.Compares, record.ModRevIs(at, u.stored))
		d.Ops = append(append(d.Ops, u.movingOps(unit)...), record.Put(at, record.MustEncode(unit)))
	}
	for _, u := range change.added {
		u.setSequence(l.post.NextArrival())
		u.life.Begin(work.WriteCreation)
		l.add(u)
		at := u.record.Path().Key()
		d.Compares = append(d.Compares, record.Absent(at))
		d.Ops = append(d.Ops, record.Put(at, record.MustEncode(u.record)), record.Put(u.record.Order().Key(), record.MustEncode(l.orderOf(u))))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		j.finishWrite()
		if o == txn.Landed {
			l.takeJobChange(change, rev)
			change.answer(nil)
		} else {
			l.dropJobChange(change)
			change.answer(refusal.NotTaken("job "+rec.Name, "change", err))
		}
		l.notifyJob(j)
		l.finishJob(j) // its units may have ended meanwhile
	}
	l.post.Settle(d, key, post.Wrote(key, func(written record.Job) bool {
		return written.UID == rec.UID && bytes.Equal(written.Document, rec.Document) && isSameBoost(written.Boost, rec.Boost)
	}))
}

// takeJobChange takes over that the store has a change at rev, and carries it out.
func (l *Leader) takeJobChange(change *jobChange, rev resource.Revision) {
	j := change.job
	resumed := j.doc.IsSuspended() != change.doc.IsSuspended()
	j.setDocument(change.doc)
	l.keepJob(j, change.rec, rev)
	for _, u := range j.units {
		u.setLabels(form.Labels(j.doc))
		l.occupancy.noteUnit(u)
	}
	for _, u := range change.moved {
		u.life.Finish(work.WriteChange)
		if change.priority != nil {
			l.room.Remove(u.key)
			l.removeConsumer(u) // the trees know its priority
			u.setPriority(*change.priority)
		}
		u.setQueue(cmp.Or(change.queue, u.record.Queue), rev)
	}
	l.noteQueues() // a rule of the queue judges each by the new places of all
	for _, u := range change.moved {
		l.goOn(u)
	}
	for _, u := range change.added {
		u.life.Finish(work.WriteCreation)
		u.enterOrder(rev)
		j.restoreUnit(u)
		l.goOn(u)
	}
	if resumed {
		for _, u := range j.units {
			l.takeWish(u)
		}
	}
	if change.priority != nil {
		l.awaitBoostEnd(j)
	}
	l.endSurplus(j)
	l.holdUnits(j)
}

// dropJobChange takes over that the store does not have a change.
func (l *Leader) dropJobChange(change *jobChange) {
	l.census.note(change.job.units[0])
	for _, u := range change.moved {
		u.life.Finish(work.WriteChange)
		l.goOn(u)
	}
	for _, u := range change.added {
		u.life.Finish(work.WriteCreation)
		u.fail(api.Errorf(503, "%s was not stored", u.path))
		l.removeUnit(u)
	}
}

// answer runs the steps behind the change.
func (c *jobChange) answer(refused *api.Status) {
	if c.then != nil {
		c.then(refused)
	}
}

// keepJob takes over the job as it was written at rev.
func (l *Leader) keepJob(j *job, written record.Job, rev resource.Revision) {
	j.keep(written, rev)
	l.census.note(j.units[0])
}
