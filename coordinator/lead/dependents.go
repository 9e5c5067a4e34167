package lead

import (
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/life"
)

// dependents is which jobs wait for which. The zero value is empty.
//
// Invariant: of has the positions that dependencies of jobs of the view name, and no others.
type dependents struct {
	of map[string]*awaited
	// news are the jobs that have changed since they were looked at.
	news []*job
	// searches counts the searches for a cycle.
	searches uint64
}

// awaited is a position that dependencies name.
//
// Invariant: by has each job of the view with such a dependency, once, in the order in which
// the jobs have come; job is the one at the position, nil where there is none.
type awaited struct {
	position string
	job      *job
	by       []*job
	// searched is the last search that came here, and from the name of the job that led it.
	searched uint64
	from     string
}

// position is the name of the job with its namespace.
func (j *job) position() string { return j.record.Namespace + "/" + j.record.Name }

// dependencies are those of the job's document.
func (j *job) dependencies() []api.JobDependency {
	if j.doc == nil {
		return nil
	}
	return j.doc.Spec.Dependencies
}

// awaits reports whether a dependency of the job has not come true. A job that ends waits
// for nothing.
func (j *job) awaits() bool {
	return len(j.record.Met) < len(j.dependencies()) && j.record.Cancelled == nil && !api.Phase(j.record.Phase).Ended()
}

// hasMet reports whether the dependency of an index has come true.
func (j *job) hasMet(i int) bool { return slices.Contains(j.record.Met, i) }

// open are the indices of the dependencies that have not come true.
func (j *job) open() (list []int) {
	for i := range j.dependencies() {
		if !j.hasMet(i) {
			list = append(list, i)
		}
	}
	return list
}

// awaited are the positions of the jobs that a job depends on, each once.
func (j *job) awaited() []string {
	var list []string
	for _, d := range j.dependencies() {
		list = append(list, j.record.Namespace+"/"+d.Job)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// needsOf are the positions that the dependencies of a job name, by their index. Those that
// no job of the view names are new.
func (r *register) needsOf(j *job) []*awaited {
	list := j.dependencies()
	needs := make([]*awaited, len(list))
	for i, d := range list {
		position := j.record.Namespace + "/" + d.Job
		if needs[i] = r.dependents.of[position]; needs[i] != nil {
			continue
		}
		if same := slices.IndexFunc(list, func(o api.JobDependency) bool { return o.Job == d.Job }); same < i {
			needs[i] = needs[same]
			continue
		}
		needs[i] = &awaited{position: position, job: r.jobs[position]}
	}
	return needs
}

// insert takes a job in that needs these.
func (d *dependents) insert(j *job, needs []*awaited) {
	if a := d.of[j.position()]; a != nil {
		a.job = j
	}
	j.setNeeds(needs)
	for i, a := range needs {
		if slices.Contains(needs[:i], a) {
			continue
		}
		if d.of == nil {
			d.of = map[string]*awaited{}
		}
		d.of[a.position] = a
		a.by = append(a.by, j)
	}
}

// remove takes a job out.
func (d *dependents) remove(j *job) {
	for _, a := range j.needs {
		a.by = slices.DeleteFunc(a.by, func(o *job) bool { return o == j })
		if len(a.by) == 0 {
			delete(d.of, a.position)
		}
	}
	j.setNeeds(nil)
	if a := d.of[j.position()]; a != nil {
		a.job = nil
	}
}

// jobs are those with a dependency on a position.
func (d *dependents) jobs(position string) []*job {
	if a := d.of[position]; a != nil {
		return a.by
	}
	return nil
}

// note notes that a job has changed, if others depend on it or it depends on others.
func (d *dependents) note(j *job) {
	if (len(j.dependencies()) > 0 || d.of[j.position()] != nil) && !slices.Contains(d.news, j) {
		d.news = append(d.news, j)
	}
}

// take returns the jobs that have changed, by their positions.
func (d *dependents) take() []*job {
	list := d.news
	d.news = nil
	slices.SortStableFunc(list, func(a, b *job) int { return strings.Compare(a.position(), b.position()) })
	return list
}

// progressOf is how far the job at a position is. A job that is just being created is not
// there yet: it may come to nothing.
func (r *register) progressOf(position string) life.Progress {
	j := r.jobs[position]
	if j == nil || j.stored == 0 {
		return life.NotThere
	}
	switch phase := api.Phase(j.record.Phase); {
	case phase == api.Succeeded:
		return life.EndedWell
	case phase.Ended():
		return life.EndedOtherwise
	case slices.ContainsFunc(j.units, func(u *unit) bool { return u.record.Started != "" }):
		return life.Begun
	}
	return life.NotBegun
}

// isAwaited reports whether the answer of a dependency on a job is not durable yet. The
// job keeps its key until then: a later leader could not tell how it has ended.
func (r *register) isAwaited(j *job) bool {
	a := r.dependents.of[j.position()]
	return a != nil && a.isOpen()
}

// isOpen reports whether a job waits for an answer about the position.
func (a *awaited) isOpen() bool {
	return slices.ContainsFunc(a.by, func(o *job) bool { return o.awaits() && o.needsStill(a) })
}

// needsStill reports whether a dependency of the job on the position has not come true.
func (j *job) needsStill(a *awaited) bool {
	for i, need := range j.needs {
		if need == a && !j.hasMet(i) {
			return true
		}
	}
	return false
}
