package lead

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// drawnJob is a job of a view, with dependencies on any of so many names. A few have come
// true; the job may have ended.
func drawnJob(t *rapid.T, name string, names int) *job {
	j := &job{stored: 1, doc: &api.Job{}}
	j.record.Namespace, j.record.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), name
	for i := range rapid.IntRange(0, 4).Draw(t, "dependencies") {
		other := fmt.Sprint("j", rapid.IntRange(0, names-1).Draw(t, "other"))
		if other == name {
			continue
		}
		if rapid.IntRange(0, 5).Draw(t, "met") == 0 {
			j.record.Met = append(j.record.Met, len(j.doc.Spec.Dependencies))
		}
		kind := []string{api.DependAfter, api.DependAfterOK, api.DependAfterNotOK, api.DependAfterAny}[i%4]
		j.doc.Spec.Dependencies = append(j.doc.Spec.Dependencies, api.JobDependency{Type: kind, Job: other})
	}
	switch rapid.IntRange(0, 9).Draw(t, "end") {
	case 0:
		j.record.Cancelled = &record.Cancellation{Reason: "UserRequested"}
	case 1:
		j.record.Phase = string(api.Failed)
	}
	return j
}

// naiveCycle searches as plainly as can be: over the jobs by their names, and also where no
// job waits for the new one.
func naiveCycle(jobs map[string]*job, first *job, most int) (names []string, tooMany bool) {
	from := map[string]string{}
	for next := []*job{first}; len(next) > 0; {
		j := next[len(next)-1]
		next = next[:len(next)-1]
		for i, d := range j.doc.Spec.Dependencies {
			position := j.record.Namespace + "/" + d.Job
			_, seen := from[position]
			switch {
			case slices.Contains(j.record.Met, i):
				continue
			case d.Job == first.record.Name:
				for name := j.record.Name; name != first.record.Name; name = from[j.record.Namespace+"/"+name] {
					names = append(names, name)
				}
				slices.Reverse(names)
				return append([]string{first.record.Name}, names...), false
			case seen:
				continue
			}
			if from[position] = j.record.Name; len(from) > most {
				return nil, true
			}
			o := jobs[position]
			if o == nil || o.record.Cancelled != nil || api.Phase(o.record.Phase).Ended() {
				continue
			}
			next = append(next, o)
		}
	}
	return nil, false
}

// wordNames words a cycle of these jobs as clients read it; a long one without its middle.
func wordNames(names []string) string {
	if names = append(names, names[0]); len(names) > 8 {
		names = slices.Concat(names[:4], []string{"…"}, names[len(names)-3:])
	}
	return strings.Join(names, " waits for ")
}

// checkDependents compares the dependents of a register with the dependencies of its jobs.
func checkDependents(t *rapid.T, r *register) {
	count := 0
	for position, j := range r.jobs {
		if len(j.needs) != len(j.doc.Spec.Dependencies) {
			t.Fatalf("%s needs %d positions", position, len(j.needs))
		}
		for i, a := range j.needs {
			want := j.record.Namespace + "/" + j.doc.Spec.Dependencies[i].Job
			if a.position != want || r.dependents.of[want] != a || a.job != r.jobs[want] || !slices.Contains(a.by, j) {
				t.Fatalf("%s needs %s for %s", position, a.position, want)
			}
		}
		count += len(j.awaited())
	}
	for position, a := range r.dependents.of {
		if count -= len(a.by); len(a.by) == 0 {
			t.Fatalf("no job needs %s", position)
		}
	}
	if count != 0 {
		t.Fatalf("%d dependencies too few are kept", count)
	}
}

// isWaitedFor reports whether a job that goes on waits for the answer about another.
func isWaitedFor(jobs map[string]*job, j *job) bool {
	for _, o := range jobs {
		if o.record.Namespace != j.record.Namespace || o.record.Cancelled != nil || api.Phase(o.record.Phase).Ended() {
			continue
		}
		for i, d := range o.doc.Spec.Dependencies {
			if d.Job == j.record.Name && !slices.Contains(o.record.Met, i) {
				return true
			}
		}
	}
	return false
}

// The search says the same as a plain one, over any jobs that come, go on and go: the same
// cycle, in the same words. A bound on the search refuses only where a job waits for the new
// one.
func TestPropertyASearchFindsTheCycleOfAPlainOne(t *testing.T) {
	found, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.IntRange(2, 12).Draw(t, "names")
		r := newRegister("")
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			j := drawnJob(t, fmt.Sprint("j", rapid.IntRange(0, names-1).Draw(t, "name")), names)
			old := r.jobs[j.position()]
			if old != nil && rapid.Bool().Draw(t, "gone") {
				old.remove()
				r.deleteJob(old)
				checkDependents(t, &r)
				continue
			}
			if old != nil { // goes on: its record is another
				for i := range old.doc.Spec.Dependencies {
					if !slices.Contains(old.record.Met, i) {
						old.record.Met = append(old.record.Met, i)
						break
					}
				}
				continue
			}
			most := rapid.IntRange(1, 12).Draw(t, "most")
			cycle, tooMany := r.searchCycle(j, most)
			wantNames, wantMany := naiveCycle(r.jobs, j, most)
			want := ""
			if len(wantNames) > 0 {
				found++
				want = wordNames(wantNames)
			}
			if wantMany = wantMany && isWaitedFor(r.jobs, j); wantMany {
				refused++
			}
			if cycle != want || tooMany != wantMany {
				t.Fatalf("job %s: %q, too many %t; want %q, %t", j.position(), cycle, tooMany, want, wantMany)
			}
			if rapid.IntRange(0, 3).Draw(t, "taken") > 0 || cycle == "" {
				r.insertJob(j)
				checkDependents(t, &r)
			}
		}
	})
	if found == 0 || refused == 0 {
		t.Errorf("%d cycles and %d bounds were met", found, refused)
	}
}
