package lead

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file carries out the dependencies of jobs (ADR 81). The units of a job are held
// until all its dependencies have come true. That a dependency has come true is written
// with the job, so no later change of the other job takes the answer back; a job whose
// dependency cannot come true any more fails with its first unit.

// mostAwaited bounds the jobs that the search for a cycle looks at.
const mostAwaited = 10_000

// followChanges goes on with the jobs that depend on jobs which have changed.
func (l *Leader) followChanges() {
	for len(l.work.Dependents.News) > 0 {
		for _, j := range l.work.Dependents.Take() {
			l.followDependencies(j)
			for _, o := range slices.Clone(l.work.Dependents.Jobs(j.Position())) {
				l.followDependencies(o)
				l.noteWaiting(o.Units[0])
			}
			for _, position := range j.Awaited() { // it may be removed now
				if o := l.work.Jobs[position]; o != nil && o.Record.Cancelled != nil && o.Record.Cancelled.Remove {
					l.finishJob(o)
				}
			}
		}
	}
}

// followDependencies looks at the dependencies of a job again.
func (l *Leader) followDependencies(j *work.Job) {
	if j.Gone || j.Stored == 0 || j.Writing || !j.Awaits() {
		return
	}
	met, never := l.judgeDependencies(j)
	switch {
	case never != nil:
		l.failDependent(j, *never)
	case len(met) > len(j.Record.Met):
		l.writeMet(j, met)
	}
}

// judgeDependencies returns the dependencies of a job that have come true by now, by their
// index, and the first that cannot come true any more; nil for none.
func (l *Leader) judgeDependencies(j *work.Job) (met []int, never *api.JobDependency) {
	met = slices.Clone(j.Record.Met)
	for _, i := range j.Open() {
		d := j.Dependencies()[i]
		switch life.Dependency(d.Type).StandingAt(l.work.ProgressOf(j.Record.Namespace + "/" + d.Job)) {
		case life.Met:
			met = append(met, i)
		case life.Never:
			if never == nil {
				never = &d
			}
		case life.Open:
		}
	}
	slices.Sort(met)
	return met, never
}

// writeMet makes durable which dependencies have come true, and has the units tried once
// all have.
func (l *Leader) writeMet(j *work.Job, met []int) {
	key, rec := record.JobKey(j.Record.Namespace, j.Record.Name), j.Record
	rec.Met = met
	j.BeginWrite()
	l.post.Settle(post.Change(key, j.Stored, rec, func(o txn.Outcome, rev resource.Revision, err error) {
		j.FinishWrite()
		if o != txn.Landed {
			l.post.Warn("dependencies_not_written", "job", key, "outcome", o, "error", err)
			l.goOnWith(j)
			l.post.After(lastBackoff, func() { l.followDependencies(j) })
			return
		}
		l.keepJob(j, rec, rev)
		l.notifyJob(j)
		l.finishJob(j) // which has the units tried, or ends them if the job was cancelled
	}, func(written record.Job) bool { return written.UID == rec.UID && slices.Equal(written.Met, rec.Met) }))
}

// failDependent fails the first unit of a job, a dependency of which cannot come true any
// more; the other units end with the job.
func (l *Leader) failDependent(j *work.Job, d api.JobDependency) {
	u := j.Units[0]
	switch {
	case u.Life.EndAsked() || !u.Waiting():
		return
	case u.Stored == 0 || u.Life.IsBeingWritten() || u.Attempt != nil || u.Adopting != "":
		l.post.After(firstBackoff, func() { l.followDependencies(j) })
		return
	}
	other := l.work.Jobs[j.Record.Namespace+"/"+d.Job]
	text := fmt.Sprintf("%s: %s, and job %s is %s", record.DependencyNeverSatisfied, d, d.Job, other.Record.Phase)
	l.writeFailed(u, record.DependencyNeverSatisfied, text, func() { l.followDependencies(j) }, func() {
		if u.Life.EndAsked() {
			l.endQueued(u)
			return
		}
		l.finish(u)
	})
}

// refusesCycle refuses a new job that would wait for itself over other jobs. The jobs may
// come in any order, so the last of a cycle is the one that is refused.
func (l *Leader) refusesCycle(s *submission) *api.Status {
	if s.job == nil {
		return nil
	}
	switch cycle, tooMany := l.work.SearchCycle(s.job, mostAwaited); {
	case cycle != "":
		return api.Errorf(422, "spec.dependencies: a cycle: %s; leave out one of them", cycle)
	case tooMany:
		return api.Errorf(422, "spec.dependencies: job %s waits for more than %d jobs, directly and over others: submit it when some have ended", s.job.Record.Name, mostAwaited)
	}
	return nil
}

// wantsOf lists the jobs that a job waits for, in words.
func (l *Leader) wantsOf(j *work.Job) (list []string) {
	for _, i := range j.Open() {
		d := j.Dependencies()[i]
		text := shown.WantOf(d)
		if l.work.Jobs[j.Record.Namespace+"/"+d.Job] == nil {
			text += ", which does not exist"
		}
		list = append(list, text)
	}
	return list
}

// dependencyWarnings are for the client of a new job that depends on jobs which are not
// there.
func (l *Leader) dependencyWarnings(j *work.Job) (list []string) {
	if j == nil {
		return nil
	}
	for _, i := range j.Open() {
		if d := j.Dependencies()[i]; l.work.Jobs[j.Record.Namespace+"/"+d.Job] == nil {
			list = append(list, fmt.Sprintf("spec.dependencies[%d]: there is no job %s in namespace %s: job %s waits until there is.", i, d.Job, j.Record.Namespace, j.Record.Name))
		}
	}
	return list
}
