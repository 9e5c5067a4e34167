package work

import (
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/life"
)

// SearchCycle searches a cycle through a new job, over at most so many positions, and words the
// cycle. The search runs only where a job waits for the new job: no other new job closes a
// cycle.
func (r *Register) SearchCycle(first *Job, most int) (cycle string, tooMany bool) {
	goal := r.Dependents.of[first.Position()]
	if goal == nil || !goal.isOpen() {
		return "", false
	}
	search := r.Dependents.beginSearch()
	needs, seen := r.needsOf(first), 0
	var next []*Job
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
			if a.job != nil && a.job.Awaits() {
				next = append(next, a.job)
			}
		}
		if len(next) == 0 {
			return "", false
		}
	}
}

// beginSearch numbers a search for a cycle.
func (d *Dependents) beginSearch() uint64 {
	d.searches++
	return d.searches
}

// reach notes the arrival of a search at the position, from a job.
func (a *awaited) reach(search uint64, from *Job) { a.searched, a.from = search, from.Record.Name }

// wordCycle words the way from the new job first to last, a job waiting for first. A position
// not named by a job of the view was reached from first.
func (r *Register) wordCycle(first, last *Job) string {
	names := []string{first.Record.Name}
	for name := last.Record.Name; name != first.Record.Name; {
		names = append(names, name)
		a := r.Dependents.of[first.Record.Namespace+"/"+name]
		if name = first.Record.Name; a != nil {
			name = a.from
		}
	}
	names = append(names, first.Record.Name)
	slices.Reverse(names)
	if len(names) > 8 {
		names = append(append(names[:4:4], "…"), names[len(names)-3:]...)
	}
	return strings.Join(names, " waits for ")
}

// Dependents is the relation between waiting jobs and awaited jobs. The zero value is empty.
//
// Invariant: of has the positions that dependencies of jobs of the register name, and no others.
type Dependents struct {
	of map[string]*awaited
	// News are the jobs changed since the last Take.
	News []*Job
	// searches counts the searches for a cycle.
	searches uint64
}

// awaited is a position named by dependencies.
//
// Invariant: by has each job of the register with such a dependency, once, in the order in which
// the jobs have come; job is the one at the position, nil where there is none.
type awaited struct {
	position string
	job      *Job
	by       []*Job
	// searched is the last search to arrive here, and from the name of the job before on the
	// way.
	searched uint64
	from     string
}

// Position is the namespace and the name of the job.
func (j *Job) Position() string { return j.Record.Namespace + "/" + j.Record.Name }

// Dependencies returns the dependencies in the job's document.
func (j *Job) Dependencies() []api.JobDependency {
	if j.Doc == nil {
		return nil
	}
	return j.Doc.Spec.Dependencies
}

// Awaits reports whether the job waits for a dependency to come true. A cancelled or ended job
// does not wait.
func (j *Job) Awaits() bool {
	return len(j.Record.Met) < len(j.Dependencies()) && j.Record.Cancelled == nil && !api.Phase(j.Record.Phase).Ended()
}

// hasMet reports whether the dependency of an index has come true.
func (j *Job) hasMet(i int) bool { return slices.Contains(j.Record.Met, i) }

// Open returns the indices of the dependencies still to come true.
func (j *Job) Open() (list []int) {
	for i := range j.Dependencies() {
		if !j.hasMet(i) {
			list = append(list, i)
		}
	}
	return list
}

// Awaited returns the positions of the jobs in the job's dependencies, each once.
func (j *Job) Awaited() []string {
	var list []string
	for _, d := range j.Dependencies() {
		list = append(list, j.Record.Namespace+"/"+d.Job)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// needsOf returns the positions named by the dependencies of a job, by the index of the
// dependency. A position not named by a job of the view is new.
func (r *Register) needsOf(j *Job) []*awaited {
	list := j.Dependencies()
	needs := make([]*awaited, len(list))
	for i, d := range list {
		position := j.Record.Namespace + "/" + d.Job
		if needs[i] = r.Dependents.of[position]; needs[i] != nil {
			continue
		}
		if same := slices.IndexFunc(list, func(o api.JobDependency) bool { return o.Job == d.Job }); same < i {
			needs[i] = needs[same]
			continue
		}
		needs[i] = &awaited{position: position, job: r.Jobs[position]}
	}
	return needs
}

// insert takes in a job with the positions of the job's dependencies.
func (d *Dependents) insert(j *Job, needs []*awaited) {
	if a := d.of[j.Position()]; a != nil {
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
func (d *Dependents) remove(j *Job) {
	for _, a := range j.needs {
		a.by = slices.DeleteFunc(a.by, func(o *Job) bool { return o == j })
		if len(a.by) == 0 {
			delete(d.of, a.position)
		}
	}
	j.setNeeds(nil)
	if a := d.of[j.Position()]; a != nil {
		a.job = nil
	}
}

// Jobs returns the jobs with a dependency on a position.
func (d *Dependents) Jobs(position string) []*Job {
	if a := d.of[position]; a != nil {
		return a.by
	}
	return nil
}

// Note notes a changed job, where the job has dependencies or dependents.
func (d *Dependents) Note(j *Job) {
	if (len(j.Dependencies()) > 0 || d.of[j.Position()] != nil) && !slices.Contains(d.News, j) {
		d.News = append(d.News, j)
	}
}

// Take returns the changed jobs by their positions, and forgets the news.
func (d *Dependents) Take() []*Job {
	list := d.News
	d.News = nil
	slices.SortStableFunc(list, func(a, b *Job) int { return strings.Compare(a.Position(), b.Position()) })
	return list
}

// ProgressOf is the progress of the job at a position. A job under creation is not there yet:
// the creation may come to nothing.
func (r *Register) ProgressOf(position string) life.Progress {
	j := r.Jobs[position]
	if j == nil || j.Stored == 0 {
		return life.NotThere
	}
	switch phase := api.Phase(j.Record.Phase); {
	case phase == api.Succeeded:
		return life.EndedWell
	case phase.Ended():
		return life.EndedOtherwise
	case slices.ContainsFunc(j.Units, func(u *Unit) bool { return u.Record.Started != "" }):
		return life.Begun
	}
	return life.NotBegun
}

// IsAwaited reports whether the answer of a dependency on a job is not durable yet. The store
// keeps the job's key until then: without the key a later leader could not know the job's end.
func (r *Register) IsAwaited(j *Job) bool {
	a := r.Dependents.of[j.Position()]
	return a != nil && a.isOpen()
}

// isOpen reports whether a job waits for an answer about the position.
func (a *awaited) isOpen() bool {
	return slices.ContainsFunc(a.by, func(o *Job) bool { return o.Awaits() && o.needsStill(a) })
}

// needsStill reports whether a dependency of the job on the position has not come true.
func (j *Job) needsStill(a *awaited) bool {
	for i, need := range j.needs {
		if need == a && !j.hasMet(i) {
			return true
		}
	}
	return false
}

// HoldAll holds all waiting units of a job because of a dependency, and returns the units newly
// held.
func (j *Job) HoldAll() (changed []*Unit) {
	for _, u := range j.Units {
		if u.Hold != HoldDependency && u.Waiting() && u.Attempt == nil && u.Adopting == "" {
			u.SetHold(HoldDependency)
			changed = append(changed, u)
		}
	}
	return changed
}
