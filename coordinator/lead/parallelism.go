package lead

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file changes the number of a job's members. A greater number adds units at the
// end. A smaller one ends the units beyond it, the highest index first; the document
// is the wish, so every leader goes on with it (ADR 38). Units that have ended so are
// removed.

// resize adds to a change what follows from another number of members.
func (l *Leader) resize(change *jobChange) *api.Status {
	j, has, want := change.job, change.job.Doc.Members(), change.doc.Members()
	first := j.Units[0].Record.Members
	switch {
	case has == want:
		return nil
	case len(change.doc.Spec.Members) > 0: // the document has the sum alone
		return nil
	case j.Gang && first == has && j.Doc.Spec.Template.Spec.Gang().MinMembers == nil, want < first:
		return api.Errorf(422, "spec.parallelism: %d cannot become %d: the first %d members of job %s are one gang, which starts together or not at all; "+
			"a job that is to grow or shrink is submitted with minMembers", has, want, first, j.Record.Name)
	case want < has:
		change.rec.Shrunk = &record.Cancellation{
			Reason: fmt.Sprintf("spec.parallelism was lowered from %d to %d", has, want), GraceSeconds: DefaultGrace, AskedMillis: l.post.Millis(),
		}
		return nil
	}
	return l.growJob(change, has, want)
}

// growJob adds the units of the members from has to want to a change. They are held
// to all that holds for units of a submission.
func (l *Leader) growJob(change *jobChange, has, want int) *api.Status {
	j := change.job
	first := j.Units[0].Record
	ns := l.namespace(first.Namespace)
	for index := has; index < want; index++ {
		rec := record.Unit{
			UID: resource.UnitUID(l.post.UID("unit")), Kind: record.JobUnit, Namespace: first.Namespace, Name: first.Name, N: index - first.Members + 1,
			Queue: l.queueOf(first.Namespace, change.doc.Spec.Queue), Priority: l.priorityOf(j), Phase: string(api.Pending), Members: 1, FirstMember: index,
			Created: l.post.Stamp(), Parent: first.UID, NodeResources: first.NodeResources,
		}
		u, status := work.NewUnit(ns.Tenant, rec, change.doc.Spec.Template.Spec, change.doc, j.Record.Made.User())
		if status != nil {
			return status
		}
		u.SetJob(j)
		if status := l.isTaken(u); status != nil {
			return status
		}
		change.added = append(change.added, u)
		change.rec.Units = append(slices.Clip(change.rec.Units), rec.Path())
	}
	if ops := l.opsOf(&submission{units: append(slices.Clone(j.Units), change.added...)}); ops > l.post.MaxOps() {
		return api.Errorf(422, "spec.parallelism: %d members of job %s take %d operations of the store, which takes %d in one transaction", want, first.Name, ops, l.post.MaxOps())
	}
	return l.barredFrom(first.Namespace, l.priorityOf(j))
}

// isTaken refuses a new unit of a job whose member's name another object has.
func (l *Leader) isTaken(u *work.Unit) *api.Status {
	name := u.MemberName(0)
	m := l.work.Members[u.Record.Namespace+"/"+name]
	switch {
	case m == nil:
		return nil
	case m.Unit.Job == u.Job:
		return api.Errorf(409, "spec.parallelism: member %s of job %s is still ending after the number was lowered; ask again when it has ended", name, u.Record.Name).Because(api.FailedPrecondition)
	}
	return api.Errorf(409, "spec.parallelism: the name %s of a new member of job %s is taken in namespace %s", name, u.Record.Name, u.Record.Namespace).Because(api.AlreadyExists)
}

// endSurplus ends the units beyond the number of members, the highest index first.
func (l *Leader) endSurplus(j *work.Job) {
	wish := j.Record.Shrunk
	if wish == nil || j.Record.Cancelled != nil {
		return
	}
	for _, u := range slices.Backward(j.Units) {
		if u.IsSurplus() && !u.Life.EndAsked() {
			l.endSince(u, releaseOf(*wish), wish.AskedMillis)
		}
	}
}

// pruneJob removes the units beyond the number of members that have ended.
func (l *Leader) pruneJob(j *work.Job) {
	isPast := func(u *work.Unit) bool { return u.IsSurplus() && u.Phase().Ended() && !u.Life.IsBeingWritten() }
	if j.Gone || j.Writing || j.Stored == 0 || j.Record.Cancelled != nil || !slices.ContainsFunc(j.Units, isPast) {
		return
	}
	rec, key := j.Record, record.JobKey(j.Record.Namespace, j.Record.Name)
	var past []*work.Unit
	for _, u := range j.Units {
		if isPast(u) && len(past) < l.post.MaxOps()-opsOfJob {
			past = append(past, u)
		}
	}
	rec.Units = slices.DeleteFunc(slices.Clone(rec.Units), func(p record.UnitPath) bool {
		return slices.ContainsFunc(past, func(u *work.Unit) bool { return u.Record.Path() == p })
	})
	d := post.Decision{
		Compares: []record.Compare{record.ModRevIs(key, j.Stored)},
		Ops:      []record.Op{record.Put(key, record.MustEncode(rec))},
	}
	for _, u := range past {
		d.Ops = append(d.Ops, record.Delete(u.Record.Path().Key()))
	}
	j.BeginWrite()
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		j.FinishWrite()
		if o != txn.Landed {
			l.post.Warn("job_prune_failed", "job", key, "outcome", o, "error", err)
			l.notifyJob(j)
			l.post.After(lastBackoff, func() { l.finishJob(j) }) // nobody asks for it again
			return
		}
		l.keepJob(j, rec, rev)
		j.DropUnits(past)
		for _, u := range past {
			l.removeUnit(u)
		}
		l.notifyJob(j)
		l.finishJob(j)
	}
	l.post.Settle(d, key, post.Wrote(key, func(written record.Job) bool { return written.UID == rec.UID && slices.Equal(written.Units, rec.Units) }))
}
