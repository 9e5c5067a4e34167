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
	job      *work.Job
	rec      record.Job // to be written
	doc      *api.Job
	queue    string       // of moved, "": as it is
	priority *int32       // of moved, nil: as it is
	moved    []*work.Unit // that wait
	added    []*work.Unit
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
func (l *Leader) changeNamedJob(c *desk.Call, namespace, name string, build func(*work.Job) (*jobChange, *work.Unit, *api.Status), result func(*jobChange) any) {
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
func (l *Leader) changeJob(c *desk.Call, j *work.Job, build func(*work.Job) (*jobChange, *work.Unit, *api.Status), result func(*jobChange) any) {
	defer c.Act()()
	switch {
	case c.IsOver():
		return
	case j.Gone:
		c.Answer(nil, NotFound("job", j.Record.Namespace, j.Record.Name))
		return
	case j.Stored == 0 || j.Writing:
		j.AddThen(func() { l.changeJob(c, j, build, result) })
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
func (l *Leader) changeOfJob(j *work.Job, p api.WorkPatch) (change *jobChange, busy *work.Unit, status *api.Status) {
	if status := checkJob(j, &p.Preconditions); status != nil {
		return nil, nil, status
	}
	raw, doc, status := p.PatchedJob(j.Record.Document, j.Doc, j.Record.Admitted.Fill)
	if status != nil {
		return nil, nil, status
	}
	change = &jobChange{job: j, rec: j.Record, doc: doc}
	change.rec.Document = raw
	if !doc.IsSuspended() {
		change.rec.Suspended = ""
	}
	if p.Spec != nil && j.Record.Cancelled != nil {
		return nil, nil, api.Errorf(409, "job %s is ending: its spec stays as it is", j.Record.Name).Because(api.FailedPrecondition)
	}
	if doc.Spec.Queue != j.Doc.Spec.Queue {
		if busy, status = l.moveUnits(change); busy != nil || status != nil {
			return nil, busy, status
		}
	}
	if status = l.resize(change); status == nil {
		status = l.hasRoomFor(j.Record.Namespace, l.growthOf(change))
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
func (l *Leader) moveUnits(change *jobChange) (busy *work.Unit, status *api.Status) {
	j := change.job
	change.queue = l.queueOf(j.Record.Namespace, change.doc.Spec.Queue)
	for _, u := range j.Units {
		switch {
		case u.IsSurplus() && u.Phase().Ended():
		case !u.Waiting():
			return nil, isPlaced("member "+u.MemberName(0)+" of job "+j.Record.Name, u)
		case !u.IsAtRest():
			return u, nil
		case u.Record.Queue != change.queue:
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
		members, together = members+u.Record.Members, max(together, u.Record.Members)
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
		Compares: []record.Compare{record.ModRevIs(key, j.Stored)},
		Ops:      []record.Op{record.Put(key, record.MustEncode(rec))},
	}
	j.BeginWrite()
	l.census.Set(j.Units[0], count.OfUnit(&j.Units[0].Record, nil).Plus(count.OfJob(&rec, change.doc)))
	for _, u := range change.moved {
		u.Life.Begin(work.WriteChange)
		l.offer(u)
		at, unit := u.Record.Path().Key(), change.placed(u.Record)
		d.Compares = append(d.Compares, record.ModRevIs(at, u.Stored))
		d.Ops = append(append(d.Ops, u.MovingOps(unit)...), record.Put(at, record.MustEncode(unit)))
	}
	for _, u := range change.added {
		u.SetSequence(l.post.NextArrival())
		u.Life.Begin(work.WriteCreation)
		l.add(u)
		at := u.Record.Path().Key()
		d.Compares = append(d.Compares, record.Absent(at))
		d.Ops = append(d.Ops, record.Put(at, record.MustEncode(u.Record)), record.Put(u.Record.Order().Key(), record.MustEncode(l.orderOf(u))))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		j.FinishWrite()
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
	resumed := j.Doc.IsSuspended() != change.doc.IsSuspended()
	j.SetDocument(change.doc)
	l.keepJob(j, change.rec, rev)
	for _, u := range j.Units {
		u.SetLabels(form.Labels(j.Doc))
		l.occupancy.noteUnit(u)
	}
	for _, u := range change.moved {
		u.Life.Finish(work.WriteChange)
		if change.priority != nil {
			l.room.Remove(u.Key)
			l.removeConsumer(u) // the trees know its priority
			u.SetPriority(*change.priority)
		}
		u.SetQueue(cmp.Or(change.queue, u.Record.Queue), rev)
	}
	l.noteQueues() // a rule of the queue judges each by the new places of all
	for _, u := range change.moved {
		l.goOn(u)
	}
	for _, u := range change.added {
		u.Life.Finish(work.WriteCreation)
		u.EnterOrder(rev)
		j.RestoreUnit(u)
		l.goOn(u)
	}
	if resumed {
		for _, u := range j.Units {
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
	l.census.Note(change.job.Units[0])
	for _, u := range change.moved {
		u.Life.Finish(work.WriteChange)
		l.goOn(u)
	}
	for _, u := range change.added {
		u.Life.Finish(work.WriteCreation)
		u.Fail(api.Errorf(503, "%s was not stored", u.Path))
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
func (l *Leader) keepJob(j *work.Job, written record.Job, rev resource.Revision) {
	j.Keep(written, rev)
	l.census.Note(j.Units[0])
}

// Operations that a change takes for the job, for each moved unit and for each added
// one.
const (
	opsOfJob   = 1
	opsOfMoved = 3
	opsOfAdded = 2
)
