package lead

import (
	"bytes"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file changes the labels and annotations of allocations and jobs. They
// stand in the submitted document, which its unit's or job's record keeps.

// PatchAllocation changes labels and annotations of an allocation. Its result is
// the allocation, once that is durable.
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

func (r PatchAllocation) serve(l *Leader, c *call) {
	u, _, status := l.member(r.Namespace, r.Name)
	switch {
	case status != nil:
		c.answer(nil, status)
		return
	case u.job != nil:
		c.answer(nil, api.Errorf(409, "allocation %s is a member of job %s: change the job's labels and annotations", r.Name, u.record.Name).Because(api.FailedPrecondition))
		return
	}
	l.answerBy(c, patchPatience, func() {
		c.answer(nil, api.Errorf(503, "allocation %s is just being placed; ask again", r.Name))
	})
	l.wait(c, u, func() bool {
		switch {
		case u.gone:
			c.answer(nil, NotFound("allocation", r.Namespace, r.Name))
		case u.ending != nil || u.lifecycle == phaseClosing:
			c.answer(nil, api.Errorf(409, "allocation %s is ending: its labels and annotations stay as they are", r.Name).Because(api.FailedPrecondition))
		case !u.isAtRest():
			return false
		default:
			l.patchUnit(c, u, r.Patch)
		}
		return true
	})
}

// isAtRest reports whether no Txn that writes the unit is under way, nor can be
// begun without the leader noticing: a change of its document is then not
// overwritten by one that was made before.
func (u *unit) isAtRest() bool {
	if u.stored == 0 || u.writing != noWrite || u.adopting != nil {
		return false
	}
	return u.attempt == nil || u.attempt.machine.State() == txn.Committed && u.attempt.preemptor == nil
}

// patchUnit changes the document of an allocation at rest. The document to be
// written is the new one at once, so that a Txn which is made meanwhile keeps it;
// the shown one changes when the store has it.
func (l *Leader) patchUnit(c *call, u *unit, p api.WorkPatch) {
	raw, status := p.Apply(u.record.Document, u.allocation.Metadata)
	if status == nil {
		status = checkAllocation(u, &p.Preconditions)
	}
	if status != nil {
		c.answer(nil, status)
		return
	}
	doc, status := api.StoredAllocation(raw)
	if status != nil {
		c.answer(nil, status)
		return
	}
	c.begun = true
	former := u.record.Document
	u.setDocument(raw)
	u.beginWrite(writeMetadata)
	l.offer(u) // which holds a unit that waits
	key, unit := u.record.Path().Key(), u.record
	isMine := func(value []byte, found bool) bool {
		rec, err := record.Decode[record.Unit](key, value)
		return found && err == nil && rec.UID == unit.UID && bytes.Equal(rec.Document, unit.Document)
	}
	finish := func(landed bool, rev resource.Revision, err error) {
		u.finishWrite(writeMetadata)
		switch {
		case landed:
			u.keepDocument(doc, rev)
			c.answer(l.allocation(u, 0), nil)
		case u.gone:
			c.answer(nil, NotFound("allocation", u.record.Namespace, u.record.Name))
		default:
			u.setDocument(former)
			c.answer(nil, api.Errorf(503, "allocation %s: the store did not take the change (%v); ask again", u.record.Name, err))
		}
		if !u.gone && u.ending != nil && u.attempt == nil {
			l.endQueued(u)
			return
		}
		l.offer(u)
		l.notify(u)
	}
	l.settle(decision{
		compares: []record.Compare{record.ModRevIs(key, u.stored)},
		ops:      []record.Op{record.Put(key, record.MustEncode(unit))},
		done: func(o txn.Outcome, rev resource.Revision, err error) {
			if o == txn.Landed {
				finish(true, rev, nil)
				return
			}
			// A Txn that ends the unit may have been first. It was made from the new
			// document, which is then in the store with it.
			l.read(key, func(kv record.KV, found bool, _ resource.Revision) { finish(isMine(kv.Value, found), kv.ModRev, err) })
		},
	}, key, isMine)
}

// atVersion refuses a change that was made from a version which is older than the
// object's specification, or which the object never had. The specification is the
// object's own key: a write of its status alone, e.g. that it is Ready, makes no
// conflict.
func atVersion(kind, name, want string, spec, has resource.Revision) *api.Status {
	if want == "" {
		return nil
	}
	from, err := strconv.ParseInt(want, 10, 64)
	if err != nil || resource.Revision(from) < spec || resource.Revision(from) > has {
		return api.Errorf(409, "%s %s is at resourceVersion %d, the change was made from %s; read it again", kind, name, has, want)
	}
	return nil
}

func (r PatchJob) serve(l *Leader, c *call) {
	j, status := l.findJob(r.Namespace, r.Name)
	if status != nil {
		c.answer(nil, status)
		return
	}
	l.patchJob(c, j, r.Patch)
}

// patchJob changes the document of a job once no other Txn writes its key.
func (l *Leader) patchJob(c *call, j *job, p api.WorkPatch) {
	name := j.record.Name
	switch {
	case c.over:
		return
	case j.gone:
		c.answer(nil, NotFound("job", j.record.Namespace, name))
		return
	case j.stored == 0 || j.writing:
		j.addThen(func() { l.patchJob(c, j, p) })
		return
	}
	raw, status := p.Apply(j.record.Document, j.doc.Metadata)
	if status == nil {
		status = checkJob(j, &p.Preconditions)
	}
	if status != nil {
		c.answer(nil, status)
		return
	}
	doc, status := api.StoredJob(raw)
	if status != nil {
		c.answer(nil, status)
		return
	}
	c.begun = true
	rec := j.record
	rec.Document = raw
	j.beginWrite()
	key := record.JobKey(rec.Namespace, rec.Name)
	l.settle(decision{
		compares: []record.Compare{record.ModRevIs(key, j.stored)},
		ops:      []record.Op{record.Put(key, record.MustEncode(rec))},
		done: func(o txn.Outcome, rev resource.Revision, err error) {
			j.finishWrite()
			if o == txn.Landed {
				j.keep(rec, rev)
				j.setDocument(doc)
				c.answer(l.jobObject(j), nil)
			} else {
				c.answer(nil, api.Errorf(503, "job %s: the store did not take the change (%v); ask again", name, err))
			}
			l.notifyJob(j)
			l.finishJob(j) // its units may have ended meanwhile
		},
	}, key, func(value []byte, found bool) bool {
		written, err := record.Decode[record.Job](key, value)
		return found && err == nil && written.UID == rec.UID && bytes.Equal(written.Document, rec.Document)
	})
}
