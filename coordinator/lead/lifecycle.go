package lead

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// add makes a unit known and queues it; it is tried in this scheduling pass.
func (l *Leader) add(u *unit) {
	l.insertUnit(u)
	if u.isNeighbour() && l.state.Relate(u.record.Namespace) {
		l.offerAgain(u.record.Namespace)
	}
	l.offer(u)
	l.census.note(u)
}

// removeUnit removes a unit from memory.
func (l *Leader) removeUnit(u *unit) {
	u.remove()
	l.census.note(u)
	l.room.Remove(u.key)
	l.removeConsumer(u)
	delete(l.fates.marked, u)
	l.deleteUnit(u)
	l.notify(u)
}

// enqueue stores a new unit that has to wait: the unit, its place in the order
// and all else that its creation writes. Then it is acknowledged.
func (l *Leader) enqueue(u *unit) {
	u.life.Begin(work.WriteCreation)
	key := u.record.Path().Key()
	l.post.SettleCreation(u.creating(), post.Decision{
		Compares: append([]record.Compare{record.Absent(key)}, u.create.compares...),
		Ops: append([]record.Op{
			record.Put(key, record.MustEncode(u.record)),
			record.Put(u.record.Order().Key(), record.MustEncode(l.orderOf(u))),
		}, u.create.ops...),
		Done: func(o txn.Outcome, rev resource.Revision, err error) { l.enqueued(u, o, rev, err) },
	})
}

func (l *Leader) enqueued(u *unit, o txn.Outcome, rev resource.Revision, err error) {
	u.life.Finish(work.WriteCreation)
	if o != txn.Landed {
		l.rejected(u, o, err)
		return
	}
	u.enterOrder(rev)
	l.created(u, rev)
	if u.life.EndAsked() {
		l.endQueued(u)
		return
	}
	l.offer(u)
	l.notify(u)
}

// created acknowledges a unit that the store now holds.
func (l *Leader) created(u *unit, rev resource.Revision) {
	if u.job != nil && u.job.stored == 0 {
		u.job.setStored(rev)
	}
}

// rejected ends a unit whose creation did not land, and never will: the client
// is told why.
func (l *Leader) rejected(u *unit, o txn.Outcome, err error) {
	object := "allocation " + u.record.Name
	if u.job != nil {
		object = "job " + u.record.Name
	}
	if o == txn.Conflict && err == nil {
		u.fail(api.Errorf(409, "%s was created elsewhere at the same time", object).Because(api.AlreadyExists))
	} else { // a definite refusal: what is unknown, as in a term that is over, is followed until it is known
		u.fail(refusal.NotTaken(object, "creation", err))
	}
	l.undoCreation(u)
}

// undoCreation forgets a unit that was never stored, with its job and its
// request id, so that the request can be made again.
func (l *Leader) undoCreation(u *unit) {
	if u.create != nil && u.create.request != (record.RequestDigest{}) {
		l.requests.Forget(u.create.request)
	}
	if u.job != nil {
		l.forgetJob(u.job)
		return
	}
	l.removeUnit(u)
}

// end asks for a unit's release now.
func (l *Leader) end(u *unit, asked txn.ReleaseAsked) { l.endSince(u, asked, l.post.Millis()) }

// endSince asks for a unit's release, however far it is, because of a request at
// an instant, in milliseconds.
func (l *Leader) endSince(u *unit, asked txn.ReleaseAsked, instant int64) {
	if u.life.EndAsked() {
		return
	}
	u.askEnd(asked, instant, l.post.Acting())
	switch {
	case u.attempt != nil:
		l.step(u.attempt, *u.life.Ending())
		l.writeWish(u)
	case u.phase().Ended() && u.job != nil:
		l.finish(u)
	case u.adopting != "": // ends once that is fenced; its agents are not waited for
		l.abandon(l.adoptions[u.adopting])
	case !u.life.IsBeingWritten():
		l.endQueued(u)
	}
}

// writeWish makes durable that the owner of a preemption's victim has asked for
// its end. The victim's record is its preemptor's until that is decided, which may
// take the whole grace, so the wish is written with the unit. A job has its own.
func (l *Leader) writeWish(u *unit) {
	a := u.attempt
	if a == nil || u.job != nil || !u.life.EndAsked() || u.life.EndDurable() || u.life.Writing() == work.WriteWish || a.machine.State() != txn.Evicting || a.machine.By() == "" {
		return
	}
	defer l.post.ActFor(u.life.Asker())()
	u.life.Begin(work.WriteWish)
	key, unit := u.record.Path().Key(), u.record
	unit.Ending = &record.Cancellation{Reason: u.life.Ending().Reason, GraceSeconds: u.life.Ending().GraceSeconds, GraceKept: u.life.Ending().Kept, AskedMillis: u.life.Asked(), Remove: true}
	l.post.Settle(post.Change(key, u.stored, unit, func(o txn.Outcome, rev resource.Revision, err error) {
		u.life.Finish(work.WriteWish)
		if o == txn.Landed {
			u.keepWish(unit.Ending, rev)
		} else { // another Txn of the unit's was first, and ends it
			l.post.Info("wish_not_written", "unit", u.path, "outcome", o, "error", err)
		}
		l.notify(u)
	}, func(rec record.Unit) bool { return rec.UID == unit.UID && rec.Ending != nil }))
}

// endQueued ends a unit that holds nothing: its place in the order goes, and an
// allocation goes altogether.
func (l *Leader) endQueued(u *unit) {
	l.room.Remove(u.key)
	if u.gathers() {
		l.offerGroup(u.group) // one member fewer has arrived
	}
	if u.stored == 0 { // the creation is acknowledged first
		l.enqueue(u)
		return
	}
	defer l.post.ActFor(u.life.Asker())()
	u.life.Begin(work.WriteEnd)
	key := u.record.Path().Key()
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, u.stored)}}
	if u.queued {
		d.Ops = append(d.Ops, record.Delete(u.record.Order().Key()))
	}
	unit := u.record
	unit.Phase, unit.Reason = string(api.Cancelled), u.life.Ending().Reason
	unit.Ended, unit.EndedMillis = l.post.Stamp(), l.post.Millis()
	if u.job == nil || u.record.Replaces {
		d.Ops = append(d.Ops, record.Delete(key))
	} else {
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(unit)))
	}
	var write func()
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Landed {
			l.post.Warn("end_failed", "unit", u.path, "outcome", o, "error", err)
		}
		if o != txn.Landed && u.job != nil && (u.job.record.Cancelled != nil || u.record.Replaces || u.isSurplus() || u.job.whyUnwanted() != "") {
			l.post.After(lastBackoff, write) // the cause is durable: nobody asks for the end again
			return
		}
		u.life.Finish(work.WriteEnd)
		if o != txn.Landed {
			u.dropWish() // it waits as before; the client asks again
			l.awaitStart(u)
			l.offer(u)
			l.notify(u)
			return
		}
		u.end(unit, rev)
		l.census.note(u)
		l.finish(u)
	}
	write = func() {
		l.post.Settle(d, key, func(value []byte, found bool) bool {
			rec, err := record.Decode[record.Unit](key, value)
			return !found || u.job != nil && err == nil && api.Phase(rec.Phase).Ended()
		})
	}
	write()
}

// finish follows a unit's end: a deleted allocation is gone; a job ends with
// its last unit.
func (l *Leader) finish(u *unit) {
	l.removeConsumer(u)
	l.notify(u)
	switch {
	case u.record.Replaces:
		l.dropReplacement(u)
	case u.job == nil:
		l.removeUnit(u)
	default:
		l.finishJob(u.job)
	}
}

// finishJob records a job's end, or removes it if it was deleted, once all its
// units have ended.
func (l *Leader) finishJob(j *job) {
	l.pruneJob(j)
	l.endUnwanted(j)
	l.holdUnits(j)
	if j.gone || j.writing || slices.ContainsFunc(j.units, func(u *unit) bool { return !u.phase().Ended() || u.life.IsBeingWritten() }) {
		return
	}
	phase, reason, message := api.Cancelled, "", ""
	if j.record.Cancelled == nil {
		var over bool
		if phase, reason, message, over = j.endOfJob(); !over {
			return
		}
	}
	remove := j.record.Cancelled != nil && j.record.Cancelled.Remove && !l.work.isAwaited(j)
	if !remove && api.Phase(j.record.Phase).Ended() {
		return
	}
	j.beginWrite()
	key := record.JobKey(j.record.Namespace, j.record.Name)
	rec := j.record
	rec.Phase, rec.Reason, rec.Message = string(phase), reason, message
	rec.Ended, rec.EndedMillis = l.post.Stamp(), l.post.Millis()
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, j.stored)}}
	if remove {
		d.Ops = append(d.Ops, record.Delete(key))
		for _, u := range j.units {
			d.Ops = append(d.Ops, record.Delete(u.record.Path().Key()))
		}
	} else {
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(rec)))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		j.finishWrite()
		if o != txn.Landed {
			l.post.Warn("job_end_failed", "job", key, "outcome", o, "error", err)
			l.notifyJob(j)
			l.post.After(lastBackoff, func() { l.finishJob(j) }) // nobody asks for it again
			return
		}
		if remove {
			l.forgetJob(j)
			return
		}
		j.keep(rec, rev)
		l.noteFinishedJob(j)
		l.notifyJob(j)
		l.finishJob(j) // it may have been deleted meanwhile
	}
	l.post.Settle(d, key, func(value []byte, found bool) bool {
		rec, err := record.Decode[record.Job](key, value)
		return !found || !remove && err == nil && api.Phase(rec.Phase).Ended()
	})
}

func (l *Leader) forgetJob(j *job) {
	if j.gone {
		return
	}
	j.remove()
	l.work.deleteJob(j)
	for _, u := range j.units {
		l.removeUnit(u)
	}
	l.notifyJob(j)
}
