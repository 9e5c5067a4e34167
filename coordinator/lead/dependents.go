package lead

import (
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/life"
)

// dependents is which jobs wait for which. The zero value is empty.
//
// Invariant: of has each job of the view under each name of its dependencies, once, in the
// order in which the jobs have come.
type dependents struct {
	// of are the jobs with a dependency, by the position of the job that it names, which
	// may not exist.
	of map[string][]*job
	// news are the jobs that have changed since they were looked at.
	news []*job
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

// open are the indices of the dependencies that have not come true.
func (j *job) open() (list []int) {
	for i := range j.dependencies() {
		if !slices.Contains(j.record.Met, i) {
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

// insert takes a job in.
func (d *dependents) insert(j *job) {
	for _, position := range j.awaited() {
		if d.of == nil {
			d.of = map[string][]*job{}
		}
		d.of[position] = append(d.of[position], j)
	}
}

// remove takes a job out.
func (d *dependents) remove(j *job) {
	for _, position := range j.awaited() {
		d.of[position] = slices.DeleteFunc(d.of[position], func(o *job) bool { return o == j })
		if len(d.of[position]) == 0 {
			delete(d.of, position)
		}
	}
}

// note notes that a job has changed, if others depend on it or it depends on others.
func (d *dependents) note(j *job) {
	if (len(j.dependencies()) > 0 || len(d.of[j.position()]) > 0) && !slices.Contains(d.news, j) {
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
func (v *view) progressOf(position string) life.Progress {
	j := v.jobs[position]
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
func (v *view) isAwaited(j *job) bool {
	return slices.ContainsFunc(v.dependents.of[j.position()], func(o *job) bool {
		return !o.gone && o.awaits() && slices.ContainsFunc(o.open(), func(i int) bool { return o.dependencies()[i].Job == j.record.Name })
	})
}
