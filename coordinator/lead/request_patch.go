package lead

import (
	"bytes"
	"cmp"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file changes the documents of allocations and jobs, which their units' or
// jobs' records keep: labels, annotations, and the fields of the specification that
// may change. Suspension is carried out in suspend.go, and the number of a job's
// members in parallelism.go.

// PatchAllocation changes an allocation. Its result is the allocation, once the
// change is durable.
type PatchAllocation struct {
	Namespace, Name string
	Patch           api.WorkPatch
}

// PatchJob is the same of a job.
type PatchJob struct {
	Namespace, Name string
	Patch           api.WorkPatch
}

// patchPatience bounds how long a change waits for an attempt to be decided.
const patchPatience = 5 * time.Second

func (r PatchAllocation) serve(l *Leader, c *desk.Call) {
	u, _, status := l.member(r.Namespace, r.Name)
	switch {
	case status != nil:
		c.Answer(nil, status)
		return
	case u.Job != nil:
		c.Answer(nil, api.Errorf(409, "allocation %s is a member of job %s: change the job", r.Name, u.Record.Name).Because(api.FailedPrecondition))
		return
	}
	c.AnswerBy(patchPatience, func() {
		c.Answer(nil, api.Errorf(503, "allocation %s is just being placed; ask again", r.Name))
	})
	c.Wait(changesOf(u), func() bool {
		switch {
		case u.Life.Gone():
			c.Answer(nil, NotFound("allocation", r.Namespace, r.Name))
		case u.Life.EndAsked() || u.Life.Phase() == work.Closing && !u.Record.Requeues:
			c.Answer(nil, api.Errorf(409, "allocation %s is ending: it stays as it is", r.Name).Because(api.FailedPrecondition))
		case !u.IsAtRest():
			if !r.Patch.Suspends() || u.Attempt == nil {
				return false
			}
			if status := checkAllocation(u, &r.Patch.Preconditions); status != nil {
				c.Answer(nil, status)
				return true
			}
			l.step(u.Attempt, txn.BudgetSpent{}) // it would have to give the place back
			return false
		default:
			l.patchUnit(c, u, r.Patch)
		}
		return true
	})
}

// patchUnit changes the document of an allocation at rest. The document to be
// written is the new one at once, so that a Txn which is made meanwhile keeps it;
// the shown one changes when the store has it.
func (l *Leader) patchUnit(c *desk.Call, u *work.Unit, p api.WorkPatch) {
	if status := checkAllocation(u, &p.Preconditions); status != nil {
		c.Answer(nil, status)
		return
	}
	raw, doc, status := p.PatchedAllocation(u.Record.Document, u.Allocation, u.Record.Admitted.Fill)
	moves := status == nil && doc.Spec.Queue != u.Allocation.Spec.Queue
	if moves && u.Group != nil {
		status = api.Errorf(409, "allocation %s is a member of group %s: all members of a group wait in one queue, %s; submit the group anew", u.Record.Name, u.Group.ID, u.Record.Queue).Because(api.FailedPrecondition)
	}
	if status == nil && moves && !u.Waiting() {
		status = isPlaced("allocation "+u.Record.Name, u)
	}
	if to := ""; status == nil && moves {
		if to = l.queueOf(u.Record.Namespace, doc.Spec.Queue); to != u.Record.Queue {
			status = l.refusesEntry(u.Record.Namespace, to, doc.Spec.Queue != "", u.Record.Members, u.Record.Members)
		}
	}
	if status == nil {
		status = l.hasRoomFor(u.Record.Namespace, changed(u, raw, doc).Minus(work.CountedUse(u)))
	}
	if status != nil {
		c.Answer(nil, status)
		return
	}
	c.Begin()
	former := u.Record.Document
	l.setDocument(u, raw, doc)
	u.Life.Begin(work.WriteChange)
	l.offer(u) // which holds a unit that waits
	key, unit := u.Record.Path().Key(), u.Record
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, u.Stored)}}
	if moves {
		unit.Queue = l.queueOf(unit.Namespace, doc.Spec.Queue)
		d.Ops = u.MovingOps(unit)
	}
	d.Ops = append(d.Ops, record.Put(key, record.MustEncode(unit)))
	isMine := post.Wrote(key, func(rec record.Unit) bool { return rec.UID == unit.UID && bytes.Equal(rec.Document, unit.Document) })
	finish := func(landed bool, rev resource.Revision, err error) {
		u.Life.Finish(work.WriteChange)
		switch {
		case landed:
			u.KeepDocument(doc, rev)
			l.census.Note(u)
			l.occupancy.noteUnit(u) // rules of other units may see other labels
			if moves && u.Queued {
				u.SetQueue(unit.Queue, rev)
			}
			c.Answer(l.allocation(u, 0), nil)
		case u.Life.Gone():
			c.Answer(nil, NotFound("allocation", u.Record.Namespace, u.Record.Name))
		default:
			l.setDocument(u, former, u.Allocation)
			c.Answer(nil, refusal.NotTaken("allocation "+u.Record.Name, "change", err))
		}
		l.goOn(u)
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o == txn.Landed {
			finish(true, rev, nil)
			return
		}
		// A Txn that ends the unit may have been first. It was made from the new
		// document, which is then in the store with it.
		l.post.Read(key, func(kv record.KV, found bool, _ resource.Revision) { finish(isMine(kv.Value, found), kv.ModRev, err) })
	}
	l.post.Settle(d, key, isMine)
}

// setDocument takes over the document that is to be written with an allocation.
func (l *Leader) setDocument(u *work.Unit, raw []byte, doc *api.Allocation) {
	u.SetDocument(raw)
	l.census.Set(u, count.OfUnit(&u.Record, doc))
}

// changed is the use of an allocation with another document.
func changed(u *work.Unit, raw []byte, doc *api.Allocation) count.Use {
	rec := u.Record
	rec.Document = raw
	return count.OfUnit(&rec, doc)
}

// isPlaced refuses to change the queue of a unit that does not wait.
func isPlaced(object string, u *work.Unit) *api.Status {
	return api.Errorf(409, "%s is %s: spec.queue can change only while the whole object waits; suspend it first, or submit it anew", object, u.Phase()).Because(api.FailedPrecondition)
}

// queueOf is the queue of work in a namespace that names a queue, "" for none.
func (l *Leader) queueOf(namespace, named string) string {
	return cmp.Or(named, l.namespace(namespace).DefaultQueue, api.DefaultQueue)
}

func (r PatchJob) serve(l *Leader, c *desk.Call) {
	l.changeNamedJob(c, r.Namespace, r.Name,
		func(j *work.Job) (*jobChange, *work.Unit, *api.Status) { return l.changeOfJob(j, r.Patch) },
		func(done *jobChange) any { return l.jobObject(done.job) })
}
