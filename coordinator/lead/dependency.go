package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
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
	for len(l.dependents.news) > 0 {
		for _, j := range l.dependents.take() {
			l.followDependencies(j)
			for _, o := range slices.Clone(l.dependents.of[j.position()]) {
				l.followDependencies(o)
				l.noteWaiting(o.units[0])
			}
			for _, position := range j.awaited() { // it may be removed now
				if o := l.jobs[position]; o != nil && o.record.Cancelled != nil && o.record.Cancelled.Remove {
					l.finishJob(o)
				}
			}
		}
	}
}

// followDependencies looks at the dependencies of a job again.
func (l *Leader) followDependencies(j *job) {
	if j.gone || j.stored == 0 || j.writing || !j.awaits() {
		return
	}
	met, never := l.judgeDependencies(j)
	switch {
	case never != nil:
		l.failDependent(j, *never)
	case len(met) > len(j.record.Met):
		l.writeMet(j, met)
	}
}

// judgeDependencies returns the dependencies of a job that have come true by now, by their
// index, and the first that cannot come true any more; nil for none.
func (l *Leader) judgeDependencies(j *job) (met []int, never *api.JobDependency) {
	met = slices.Clone(j.record.Met)
	for _, i := range j.open() {
		d := j.dependencies()[i]
		switch life.Dependency(d.Type).StandingAt(l.progressOf(j.record.Namespace + "/" + d.Job)) {
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
func (l *Leader) writeMet(j *job, met []int) {
	key, rec := record.JobKey(j.record.Namespace, j.record.Name), j.record
	rec.Met = met
	j.beginWrite()
	l.settle(decision{
		compares: []record.Compare{record.ModRevIs(key, j.stored)},
		ops:      []record.Op{record.Put(key, record.MustEncode(rec))},
		done: func(o txn.Outcome, rev resource.Revision, err error) {
			j.finishWrite()
			if o != txn.Landed {
				l.out.warn("dependencies_not_written", "job", key, "outcome", o, "error", err)
				l.goOnWith(j)
				l.after(lastBackoff, func() { l.followDependencies(j) })
				return
			}
			l.keepJob(j, rec, rev)
			l.notifyJob(j)
			l.finishJob(j) // which has the units tried, or ends them if the job was cancelled
		},
	}, key, func(value []byte, found bool) bool {
		written, err := record.Decode[record.Job](key, value)
		return found && err == nil && written.UID == rec.UID && slices.Equal(written.Met, rec.Met)
	})
}

// failDependent fails the first unit of a job, a dependency of which cannot come true any
// more; the other units end with the job.
func (l *Leader) failDependent(j *job, d api.JobDependency) {
	u := j.units[0]
	switch {
	case u.ending != nil || !u.waiting():
		return
	case u.stored == 0 || u.isBeingWritten() || u.attempt != nil || u.adopting != nil:
		l.after(firstBackoff, func() { l.followDependencies(j) })
		return
	}
	other := l.jobs[j.record.Namespace+"/"+d.Job]
	text := fmt.Sprintf("%s: %s, and job %s is %s", record.DependencyNeverSatisfied, d, d.Job, other.record.Phase)
	l.writeFailed(u, record.DependencyNeverSatisfied, text, func() { l.followDependencies(j) }, func() {
		if u.ending != nil {
			l.endQueued(u)
			return
		}
		l.finish(u)
	})
}

// refusesCycle refuses a new job that would wait for itself over other jobs. The jobs may
// come in any order, so the last of a cycle is the one that is refused.
func (l *Leader) refusesCycle(s *submission) *api.Status {
	if s.job == nil || len(l.dependents.of[s.job.position()]) == 0 { // no job waits for it
		return nil
	}
	from := map[string]string{} // the job that has led to a position
	next := []*job{s.job}
	for len(next) > 0 {
		j := next[len(next)-1]
		next = next[:len(next)-1]
		for _, i := range j.open() {
			position := j.record.Namespace + "/" + j.dependencies()[i].Job
			if position == s.job.position() {
				return api.Errorf(422, "spec.dependencies: a cycle: %s; leave out one of them", cycleOf(s.job, j, from))
			}
			if _, seen := from[position]; seen {
				continue
			}
			if from[position] = j.record.Name; len(from) > mostAwaited {
				return api.Errorf(422, "spec.dependencies: job %s waits for more than %d jobs, directly and over others: submit it when some have ended", s.job.record.Name, mostAwaited)
			}
			if o := l.jobs[position]; o != nil && o.awaits() {
				next = append(next, o)
			}
		}
	}
	return nil
}

// cycleOf words the way from a new job to the job that waits for it.
func cycleOf(first, last *job, from map[string]string) string {
	names := []string{first.record.Name}
	for name := last.record.Name; name != first.record.Name; name = from[first.record.Namespace+"/"+name] {
		names = append(names, name)
	}
	names = append(names, first.record.Name)
	slices.Reverse(names)
	if len(names) > 8 {
		names = append(append(names[:4:4], "…"), names[len(names)-3:]...)
	}
	return strings.Join(names, " waits for ")
}

// wantsOf lists the jobs that a job waits for, in words.
func (l *Leader) wantsOf(j *job) (list []string) {
	for _, i := range j.open() {
		d := j.dependencies()[i]
		text := shown.WantOf(d)
		if l.jobs[j.record.Namespace+"/"+d.Job] == nil {
			text += ", which does not exist"
		}
		list = append(list, text)
	}
	return list
}

// dependencyWarnings are for the client of a new job that depends on jobs which are not
// there.
func (l *Leader) dependencyWarnings(j *job) (list []string) {
	if j == nil {
		return nil
	}
	for _, i := range j.open() {
		if d := j.dependencies()[i]; l.jobs[j.record.Namespace+"/"+d.Job] == nil {
			list = append(list, fmt.Sprintf("spec.dependencies[%d]: there is no job %s in namespace %s: job %s waits until there is.", i, d.Job, j.record.Namespace, j.record.Name))
		}
	}
	return list
}
