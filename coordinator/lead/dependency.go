package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
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
	for len(l.work.dependents.news) > 0 {
		for _, j := range l.work.dependents.take() {
			l.followDependencies(j)
			for _, o := range slices.Clone(l.work.dependents.jobs(j.position())) {
				l.followDependencies(o)
				l.noteWaiting(o.units[0])
			}
			for _, position := range j.awaited() { // it may be removed now
				if o := l.work.jobs[position]; o != nil && o.record.Cancelled != nil && o.record.Cancelled.Remove {
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
		switch life.Dependency(d.Type).StandingAt(l.work.progressOf(j.record.Namespace + "/" + d.Job)) {
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
	l.post.Settle(post.Change(key, j.stored, rec, func(o txn.Outcome, rev resource.Revision, err error) {
		j.finishWrite()
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
func (l *Leader) failDependent(j *job, d api.JobDependency) {
	u := j.units[0]
	switch {
	case u.life.EndAsked() || !u.waiting():
		return
	case u.stored == 0 || u.life.IsBeingWritten() || u.attempt != nil || u.adopting != "":
		l.post.After(firstBackoff, func() { l.followDependencies(j) })
		return
	}
	other := l.work.jobs[j.record.Namespace+"/"+d.Job]
	text := fmt.Sprintf("%s: %s, and job %s is %s", record.DependencyNeverSatisfied, d, d.Job, other.record.Phase)
	l.writeFailed(u, record.DependencyNeverSatisfied, text, func() { l.followDependencies(j) }, func() {
		if u.life.EndAsked() {
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
	switch cycle, tooMany := l.work.searchCycle(s.job, mostAwaited); {
	case cycle != "":
		return api.Errorf(422, "spec.dependencies: a cycle: %s; leave out one of them", cycle)
	case tooMany:
		return api.Errorf(422, "spec.dependencies: job %s waits for more than %d jobs, directly and over others: submit it when some have ended", s.job.record.Name, mostAwaited)
	}
	return nil
}

// searchCycle looks for a way from a new job back to it, over at most so many positions, and
// words it. It looks only where a job waits for the new one: no other can close a cycle.
func (r *register) searchCycle(first *job, most int) (cycle string, tooMany bool) {
	goal := r.dependents.of[first.position()]
	if goal == nil || !goal.isOpen() {
		return "", false
	}
	search := r.dependents.beginSearch()
	needs, seen := r.needsOf(first), 0
	var next []*job
	for j := first; ; j, next = next[len(next)-1], next[:len(next)-1] {
		if j != first {
			needs = j.needs
		}
		for i, a := range needs {
			switch {
			case j.hasMet(i) || a.searched == search:
				continue
			case a == goal:
				return r.wordCycle(first, j), false
			}
			a.reach(search, j)
			if seen++; seen > most {
				return "", true
			}
			if a.job != nil && a.job.awaits() {
				next = append(next, a.job)
			}
		}
		if len(next) == 0 {
			return "", false
		}
	}
}

// beginSearch numbers a search for a cycle.
func (d *dependents) beginSearch() uint64 {
	d.searches++
	return d.searches
}

// reach notes that a search has come to the position from a job.
func (a *awaited) reach(search uint64, from *job) { a.searched, a.from = search, from.record.Name }

// wordCycle words the way from a new job to the job that waits for it. A position that no job
// of the view names was reached from the new job.
func (r *register) wordCycle(first, last *job) string {
	names := []string{first.record.Name}
	for name := last.record.Name; name != first.record.Name; {
		names = append(names, name)
		a := r.dependents.of[first.record.Namespace+"/"+name]
		if name = first.record.Name; a != nil {
			name = a.from
		}
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
		if l.work.jobs[j.record.Namespace+"/"+d.Job] == nil {
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
		if d := j.dependencies()[i]; l.work.jobs[j.record.Namespace+"/"+d.Job] == nil {
			list = append(list, fmt.Sprintf("spec.dependencies[%d]: there is no job %s in namespace %s: job %s waits until there is.", i, d.Job, j.record.Namespace, j.record.Name))
		}
	}
	return list
}
