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
func (l *Leader) add(u *work.Unit) {
	l.insertUnit(u)
	if u.IsNeighbour() && l.state.Relate(u.Record.Namespace) {
		l.offerAgain(u.Record.Namespace)
	}
	l.offer(u)
	l.census.Note(u)
}

// removeUnit removes a unit from memory.
func (l *Leader) removeUnit(u *work.Unit) {
	u.Remove()
	l.census.Note(u)
	l.room.Remove(u.Key)
	l.removeConsumer(u)
	delete(l.fates.marked, u)
	l.deleteUnit(u)
	l.notify(u)
}

// enqueue stores a new unit that has to wait: the unit, its place in the order
// and all else that its creation writes. Then it is acknowledged.
func (l *Leader) enqueue(u *work.Unit) {
	u.Life.Begin(work.WriteCreation)
	key := u.Record.Path().Key()
	l.post.SettleCreation(u.Creating(), post.Decision{
		Compares: append([]record.Compare{record.Absent(key)}, u.Create.Compares...),
		Ops: append([]record.Op{
			record.Put(key, record.MustEncode(u.Record)),
			record.Put(u.Record.Order().Key(), record.MustEncode(l.orderOf(u))),
		}, u.Create.Ops...),
		Done: func(o txn.Outcome, rev resource.Revision, err error) { l.enqueued(u, o, rev, err) },
	})
}

func (l *Leader) enqueued(u *work.Unit, o txn.Outcome, rev resource.Revision, err error) {
	u.Life.Finish(work.WriteCreation)
	if o != txn.Landed {
		l.rejected(u, o, err)
		return
	}
	u.EnterOrder(rev)
	l.created(u, rev)
	if u.Life.EndAsked() {
		l.endQueued(u)
		return
	}
	l.offer(u)
	l.notify(u)
}

// created acknowledges a unit that the store now holds.
func (l *Leader) created(u *work.Unit, rev resource.Revision) {
	if u.Job != nil && u.Job.Stored == 0 {
		u.Job.SetStored(rev)
	}
}

// rejected ends a unit whose creation did not land, and never will: the client
// is told why.
func (l *Leader) rejected(u *work.Unit, o txn.Outcome, err error) {
	object := "allocation " + u.Record.Name
	if u.Job != nil {
		object = "job " + u.Record.Name
	}
	if o == txn.Conflict && err == nil {
		u.Fail(api.Errorf(409, "%s was created elsewhere at the same time", object).Because(api.AlreadyExists))
	} else { // a definite refusal: what is unknown, as in a term that is over, is followed until it is known
		u.Fail(refusal.NotTaken(object, "creation", err))
	}
	l.undoCreation(u)
}

// undoCreation forgets a unit that was never stored, with its job and its
// request id, so that the request can be made again.
func (l *Leader) undoCreation(u *work.Unit) {
	if u.Create != nil && u.Create.Request != (record.RequestDigest{}) {
		l.requests.Forget(u.Create.Request)
	}
	if u.Job != nil {
		l.forgetJob(u.Job)
		return
	}
	l.removeUnit(u)
}

// end asks for a unit's release now.
func (l *Leader) end(u *work.Unit, asked txn.ReleaseAsked) { l.endSince(u, asked, l.post.Millis()) }

// endSince asks for a unit's release, however far it is, because of a request at
// an instant, in milliseconds.
func (l *Leader) endSince(u *work.Unit, asked txn.ReleaseAsked, instant int64) {
	if u.Life.EndAsked() {
		return
	}
	u.AskEnd(asked, instant, l.post.Acting())
	switch {
	case u.Attempt != nil:
		l.step(u.Attempt, *u.Life.Ending())
		l.writeEndRequest(u)
	case u.Phase().Ended() && u.Job != nil:
		l.finish(u)
	case u.Adopting != "": // ends once that is fenced; its agents are not waited for
		l.abandon(l.adoptions[u.Adopting])
	case !u.Life.IsBeingWritten():
		l.endQueued(u)
	}
}

// writeEndRequest makes durable that the owner of a preemption's victim has asked for
// its end. The victim's record is its preemptor's until that is decided, which may
// take the whole grace, so the request is written with the unit. A job has its own.
func (l *Leader) writeEndRequest(u *work.Unit) {
	a := u.Attempt
	if a == nil || u.Job != nil || !u.Life.EndAsked() || u.Life.EndDurable() || u.Life.Writing() == work.WriteEndRequest || a.Machine.State() != txn.Evicting || a.Machine.By() == "" {
		return
	}
	defer l.post.ActFor(u.Life.Asker())()
	u.Life.Begin(work.WriteEndRequest)
	key, unit := u.Record.Path().Key(), u.Record
	unit.Ending = &record.Cancellation{Reason: u.Life.Ending().Reason, GraceSeconds: u.Life.Ending().GraceSeconds, GraceKept: u.Life.Ending().Kept, AskedMillis: u.Life.Asked(), Remove: true}
	l.post.Settle(post.Change(key, u.Stored, unit, func(o txn.Outcome, rev resource.Revision, err error) {
		u.Life.Finish(work.WriteEndRequest)
		if o == txn.Landed {
			u.KeepEndRequest(unit.Ending, rev)
		} else { // another Txn of the unit's was first, and ends it
			l.post.Info("wish_not_written", "unit", u.Path, "outcome", o, "error", err)
		}
		l.notify(u)
	}, func(rec record.Unit) bool { return rec.UID == unit.UID && rec.Ending != nil }))
}

// endQueued ends a unit that holds nothing: its place in the order goes, and an
// allocation goes altogether.
func (l *Leader) endQueued(u *work.Unit) {
	l.room.Remove(u.Key)
	if u.Gathers() {
		l.offerGroup(u.Group) // one member fewer has arrived
	}
	switch {
	case u.Stored == 0: // the creation is acknowledged first
		l.enqueue(u)
		return
	case u.Life.IsBeingWritten(): // the answer goes on with the end
		return
	}
	defer l.post.ActFor(u.Life.Asker())()
	u.Life.Begin(work.WriteEnd)
	key := u.Record.Path().Key()
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, u.Stored)}}
	if u.Queued {
		d.Ops = append(d.Ops, record.Delete(u.Record.Order().Key()))
	}
	unit := u.Record
	unit.Phase, unit.Reason = string(api.Cancelled), u.Life.Ending().Reason
	unit.Ended, unit.EndedMillis = l.post.Stamp(), l.post.Millis()
	if u.Job == nil || u.Record.Replaces {
		d.Ops = append(d.Ops, record.Delete(key))
	} else {
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(unit)))
	}
	var write func()
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Landed {
			l.post.Warn("end_failed", "unit", u.Path, "outcome", o, "error", err)
		}
		if o != txn.Landed && u.Job != nil && (u.Job.Record.Cancelled != nil || u.Record.Replaces || u.IsSurplus() || u.Job.WhyUnwanted() != "") {
			l.post.After(lastBackoff, write) // the cause is durable: nobody asks for the end again
			return
		}
		u.Life.Finish(work.WriteEnd)
		if o != txn.Landed {
			u.DropEndRequest() // it waits as before; the client asks again
			l.awaitStart(u)
			l.offer(u)
			l.notify(u)
			return
		}
		u.End(unit, rev)
		l.census.Note(u)
		l.finish(u)
	}
	write = func() {
		l.post.Settle(d, key, func(value []byte, found bool) bool {
			rec, err := record.Decode[record.Unit](key, value)
			return !found || u.Job != nil && err == nil && api.Phase(rec.Phase).Ended()
		})
	}
	write()
}

// finish follows a unit's end: a deleted allocation is gone; a job ends with
// its last unit.
func (l *Leader) finish(u *work.Unit) {
	l.removeConsumer(u)
	l.notify(u)
	switch {
	case u.Record.Replaces:
		l.dropReplacement(u)
	case u.Job == nil:
		l.removeUnit(u)
	default:
		l.finishJob(u.Job)
	}
}

// finishJob records a job's end, or removes it if it was deleted, once all its
// units have ended.
func (l *Leader) finishJob(j *work.Job) {
	l.pruneJob(j)
	l.endUnwanted(j)
	l.holdUnits(j)
	if j.Gone || j.Writing || slices.ContainsFunc(j.Units, func(u *work.Unit) bool { return !u.Phase().Ended() || u.Life.IsBeingWritten() }) {
		return
	}
	phase, reason, message := api.Cancelled, "", ""
	if j.Record.Cancelled == nil {
		var over bool
		if phase, reason, message, over = j.EndOfJob(); !over {
			return
		}
	}
	remove := j.Record.Cancelled != nil && j.Record.Cancelled.Remove && !l.work.IsAwaited(j)
	if !remove && api.Phase(j.Record.Phase).Ended() {
		return
	}
	j.BeginWrite()
	key := record.JobKey(j.Record.Namespace, j.Record.Name)
	rec := j.Record
	rec.Phase, rec.Reason, rec.Message = string(phase), reason, message
	rec.Ended, rec.EndedMillis = l.post.Stamp(), l.post.Millis()
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, j.Stored)}}
	if remove {
		d.Ops = append(d.Ops, record.Delete(key))
		for _, u := range j.Units {
			d.Ops = append(d.Ops, record.Delete(u.Record.Path().Key()))
		}
	} else {
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(rec)))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		j.FinishWrite()
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
		j.Keep(rec, rev)
		l.noteFinishedJob(j)
		l.notifyJob(j)
		l.finishJob(j) // it may have been deleted meanwhile
	}
	l.post.Settle(d, key, func(value []byte, found bool) bool {
		rec, err := record.Decode[record.Job](key, value)
		return !found || !remove && err == nil && api.Phase(rec.Phase).Ended()
	})
}

func (l *Leader) forgetJob(j *work.Job) {
	if j.Gone {
		return
	}
	j.Remove()
	l.work.DeleteJob(j)
	for _, u := range j.Units {
		l.removeUnit(u)
	}
	l.notifyJob(j)
}
