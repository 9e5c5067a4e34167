package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"pgregory.net/rapid"
)

// drawnJob is a job of a view, with dependencies on any of so many names. A few have come
// true; the job may have ended.
func drawnJob(t *rapid.T, name string, names int) *Job {
	j := &Job{Stored: 1, Doc: &api.Job{}}
	j.Record.Namespace, j.Record.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), name
	for i := range rapid.IntRange(0, 4).Draw(t, "dependencies") {
		other := fmt.Sprint("j", rapid.IntRange(0, names-1).Draw(t, "other"))
		if other == name {
			continue
		}
		if rapid.IntRange(0, 5).Draw(t, "met") == 0 {
			j.Record.Met = append(j.Record.Met, len(j.Doc.Spec.Dependencies))
		}
		kind := []string{api.DependAfter, api.DependAfterOK, api.DependAfterNotOK, api.DependAfterAny}[i%4]
		j.Doc.Spec.Dependencies = append(j.Doc.Spec.Dependencies, api.JobDependency{Type: kind, Job: other})
	}
	switch rapid.IntRange(0, 9).Draw(t, "end") {
	case 0:
		j.Record.Cancelled = &record.Cancellation{Reason: "UserRequested"}
	case 1:
		j.Record.Phase = string(api.Failed)
	}
	return j
}

// naiveCycle searches as plainly as can be: over the jobs by their names, and also where no job
// waits for the new job.
func naiveCycle(jobs map[string]*Job, first *Job, most int) (names []string, tooMany bool) {
	from := map[string]string{}
	for next := []*Job{first}; len(next) > 0; {
		j := next[len(next)-1]
		next = next[:len(next)-1]
		for i, d := range j.Doc.Spec.Dependencies {
			position := j.Record.Namespace + "/" + d.Job
			_, seen := from[position]
			switch {
			case slices.Contains(j.Record.Met, i):
				continue
			case d.Job == first.Record.Name:
				for name := j.Record.Name; name != first.Record.Name; name = from[j.Record.Namespace+"/"+name] {
					names = append(names, name)
				}
				slices.Reverse(names)
				return append([]string{first.Record.Name}, names...), false
			case seen:
				continue
			}
			if from[position] = j.Record.Name; len(from) > most {
				return nil, true
			}
			o := jobs[position]
			if o == nil || o.Record.Cancelled != nil || api.Phase(o.Record.Phase).Ended() {
				continue
			}
			next = append(next, o)
		}
	}
	return nil, false
}

// wordNames words a cycle of these jobs as clients read it; a long cycle without the middle.
func wordNames(names []string) string {
	if names = append(names, names[0]); len(names) > 8 {
		names = slices.Concat(names[:4], []string{"…"}, names[len(names)-3:])
	}
	return strings.Join(names, " waits for ")
}

// checkDependents compares the dependents of a register with the dependencies of its jobs.
func checkDependents(t *rapid.T, r *Register) {
	count := 0
	for position, j := range r.Jobs {
		if len(j.needs) != len(j.Doc.Spec.Dependencies) {
			t.Fatalf("%s needs %d positions", position, len(j.needs))
		}
		for i, a := range j.needs {
			want := j.Record.Namespace + "/" + j.Doc.Spec.Dependencies[i].Job
			if a.position != want || r.Dependents.of[want] != a || a.job != r.Jobs[want] || !slices.Contains(a.by, j) {
				t.Fatalf("%s needs %s for %s", position, a.position, want)
			}
		}
		count += len(j.Awaited())
	}
	for position, a := range r.Dependents.of {
		if count -= len(a.by); len(a.by) == 0 {
			t.Fatalf("no job needs %s", position)
		}
	}
	if count != 0 {
		t.Fatalf("%d dependencies too few are kept", count)
	}
}

// isWaitedFor reports whether a job that goes on waits for the answer about another.
func isWaitedFor(jobs map[string]*Job, j *Job) bool {
	for _, o := range jobs {
		if o.Record.Namespace != j.Record.Namespace || o.Record.Cancelled != nil || api.Phase(o.Record.Phase).Ended() {
			continue
		}
		for i, d := range o.Doc.Spec.Dependencies {
			if d.Job == j.Record.Name && !slices.Contains(o.Record.Met, i) {
				return true
			}
		}
	}
	return false
}

// The search agrees with a plain search, over any jobs that come, go on and go: both find the
// same cycle, in the same words. A bound on the search refuses only where a job waits for the
// new job.
func TestPropertyASearchFindsTheCycleOfAPlainOne(t *testing.T) {
	found, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.IntRange(2, 12).Draw(t, "names")
		r := NewRegister("")
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			j := drawnJob(t, fmt.Sprint("j", rapid.IntRange(0, names-1).Draw(t, "name")), names)
			old := r.Jobs[j.Position()]
			if old != nil && rapid.Bool().Draw(t, "gone") {
				old.Remove()
				r.DeleteJob(old)
				checkDependents(t, &r)
				continue
			}
			if old != nil { // goes on, with a changed record
				for i := range old.Doc.Spec.Dependencies {
					if !slices.Contains(old.Record.Met, i) {
						old.Record.Met = append(old.Record.Met, i)
						break
					}
				}
				continue
			}
			most := rapid.IntRange(1, 12).Draw(t, "most")
			cycle, tooMany := r.SearchCycle(j, most)
			wantNames, wantMany := naiveCycle(r.Jobs, j, most)
			want := ""
			if len(wantNames) > 0 {
				found++
				want = wordNames(wantNames)
			}
			if wantMany = wantMany && isWaitedFor(r.Jobs, j); wantMany {
				refused++
			}
			if cycle != want || tooMany != wantMany {
				t.Fatalf("job %s: %q, too many %t; want %q, %t", j.Position(), cycle, tooMany, want, wantMany)
			}
			if rapid.IntRange(0, 3).Draw(t, "taken") > 0 || cycle == "" {
				r.InsertJob(j)
				checkDependents(t, &r)
			}
		}
	})
	if found == 0 || refused == 0 {
		t.Errorf("%d cycles and %d bounds were met", found, refused)
	}
}
