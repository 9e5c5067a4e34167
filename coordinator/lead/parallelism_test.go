package lead

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
)

// sweep submits a job of independent members of one GPU, the first of which run.
func (x *scene) sweep(members, run int) *work.Job {
	x.t.Helper()
	u := x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":"j"},"spec":{"parallelism":%d,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"1"}}}}}}`, members))
	x.answers()
	for _, u := range u.Job.Units[:run] {
		x.settles(u, grant.Reserved)
	}
	return u.Job
}

// membersOf are the names and phases of a job's members, as clients see them.
func (x *scene) membersOf(j *work.Job) []string {
	var all []string
	for _, m := range x.jobObject(j).Status.Allocations {
		all = append(all, m.Name+" "+string(m.Phase))
	}
	return all
}

func TestAJobGrowsAtItsEnd(t *testing.T) {
	x := newScene(t)
	j := x.sweep(2, 2)
	x.wants(j.Units[0], `{"parallelism":4}`)
	if got := x.membersOf(j); len(got) != 2 {
		t.Errorf("before the store has answered the job shows %v", got)
	}
	x.answers()
	for _, u := range j.Units[2:] {
		x.settles(u, grant.Reserved)
	}
	if got, want := x.membersOf(j), []string{"j-0 Running", "j-1 Running", "j-2 Running", "j-3 Running"}; !slices.Equal(got, want) {
		t.Errorf("it has %v", got)
	}
	if len(j.Record.Units) != 4 || j.Units[3].Record.Parent != j.Units[0].Record.UID {
		t.Errorf("the record has %v", j.Record.Units)
	}
}

func TestAJobShrinksFromItsEnd(t *testing.T) {
	x := newScene(t)
	j := x.sweep(4, 3)
	x.settles(j.Units[3], grant.No)
	x.changes(j.Units[0], `{"parallelism":2}`)
	if got, want := x.membersOf(j), []string{"j-0 Running", "j-1 Running", "j-2 Terminating"}; !slices.Equal(got, want) {
		t.Errorf("while the third one stops it has %v, want %v", got, want)
	}
	third := j.Units[2]
	if !third.Life.EndAsked() || third.Life.Ending().GraceSeconds != DefaultGrace || third.Life.Ending().Reason != "spec.parallelism was lowered from 4 to 2" {
		t.Errorf("the third one ends as %+v", third.Life.Ending())
	}
	x.wants(j.Units[0], `{"parallelism":3}`)
	if got := x.refusedWith(); got != "409 spec.parallelism: member j-2 of job j is still ending after the number was lowered; ask again when it has ended" {
		t.Errorf("raised too early: %q", got)
	}
	x.settles(third, grant.Tombstone)
	if got, want := x.membersOf(j), []string{"j-0 Running", "j-1 Running"}; !slices.Equal(got, want) || x.work.Units[third.Path] != nil {
		t.Errorf("it ends with %v", got)
	}
	if found := x.keeps(third.Record.Path().Key()); found || len(j.Record.Units) != 2 {
		t.Errorf("the store has the unit: %t; the record has %v", found, j.Record.Units)
	}
	x.changes(j.Units[0], `{"parallelism":3}`)
	if got := x.membersOf(j); len(got) != 3 || x.refusedWith() != "" {
		t.Errorf("raised again, it has %v and answers %q", got, x.refusedWith())
	}
}

func TestWhatAJobCannotBecome(t *testing.T) {
	for name, c := range map[string]struct {
		lead func(*scene) *work.Job
		spec string
		want string
	}{
		"a gang of all members": {func(x *scene) *work.Job {
			u := x.submitDocument([]byte(`{"metadata":{"name":"g"},"spec":{"parallelism":2,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"9"}},"gangScheduling":{}}}}}`))
			x.answers()
			return u.Job
		}, `{"parallelism":3}`, "422 spec.parallelism: 2 cannot become 3: the first 2 members of job g are one gang, which starts together or not at all; a job that is to grow or shrink is submitted with minMembers"},
		"a name is taken": {func(x *scene) *work.Job {
			j := x.sweep(2, 0)
			x.accepted("j-2", 1, "")
			return j
		}, `{"parallelism":3}`, "409 spec.parallelism: the name j-2 of a new member of job j is taken in namespace default"},
		"the namespace is full": {func(x *scene) *work.Job { return x.sweep(2, 0) }, `{"parallelism":40}`,
			"429 namespace default has 2 allocations and may have 20: there is no room for 38 more; delete objects that have ended, or ask an operator to raise limits.allocationsPerNamespace"},
		"it is ending": {func(x *scene) *work.Job {
			j := x.sweep(2, 2)
			x.give(ClientRequest{1, EndJob{Namespace: "default", Name: "j", Options: api.DeleteOptions{}, Remove: true}})
			x.answers()
			return j
		}, `{"parallelism":3}`, "409 job j is ending: its spec stays as it is"},
		"it was read before its last change": {func(x *scene) *work.Job { return x.sweep(2, 0) }, "version", "409 job j is at resourceVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			j := c.lead(x)
			if c.spec == "version" {
				x.clear()
				x.ask(PatchJob{"default", "j", api.WorkPatch{Preconditions: api.Preconditions{ResourceVersion: "1"}, Spec: []byte(`{"parallelism":3}`)}})
			} else {
				x.wants(j.Units[0], c.spec)
			}
			x.answers()
			if got := x.refusedWith(); len(got) < len(c.want) || got[:len(c.want)] != c.want {
				t.Errorf("answered %q, want %q", got, c.want)
			}
			x.check()
		})
	}
}

// TestANewLeaderGoesOnWithAShrinkage, whichever step was the last one.
func TestANewLeaderGoesOnWithAShrinkage(t *testing.T) {
	for steps := range 6 {
		x := newScene(t)
		j := x.sweep(3, 3)
		third := j.Units[2]
		x.wants(j.Units[0], `{"parallelism":2}`)
		for i := 0; i < steps && len(x.asked) > 0; i++ {
			if x.answer(); third.Phase() == api.Terminating && len(x.asked) == 0 && third.Attempt != nil {
				x.says(third, grant.Tombstone)
			}
		}
		durable := j.Doc.Members() == 2
		next := x.succeeded()
		next.give(ResumeWork{})
		next.answers()
		if u := next.work.Units[third.Path]; u != nil && u.Attempt != nil && durable {
			n := next.nodes[u.Attempt.Machine.Nodes()[0]]
			next.hear(grant.Replied{Node: n.view.ID, Tx: u.Attempt.Machine.ID(), Incarnation: n.incarnation, Revision: n.revision, State: grant.Tombstone})
			next.answers()
		}
		next.pass(10 * time.Second)
		next.answers()
		k := next.work.Jobs["default/j"]
		if want := map[bool]int{true: 2, false: 3}[durable]; len(k.Units) != want || len(k.Record.Units) != want {
			t.Errorf("after %d steps it has %d members, want %d", steps, len(k.Units), want)
		}
	}
}

func TestAChangeThatTheStoreRefusesLeavesNothing(t *testing.T) {
	x := newScene(t)
	j := x.sweep(2, 0)
	x.put(record.JobKey("default", "j"), record.MustEncode(j.Record)) // another has written it
	x.changes(j.Units[0], `{"parallelism":4}`)
	if got := x.refusedWith(); len(got) < 3 || got[:3] != "503" || len(x.work.Units) != 2 || x.work.Members["default/j-2"] != nil {
		t.Errorf("answered %q, and %d units are there", got, len(x.work.Units))
	}
	x.check()
}

// TestAChangeFitsOneTransaction of the store, to the last unit.
func TestAChangeFitsOneTransaction(t *testing.T) {
	x := newScene(t)
	added, moved := (x.post.MaxOps()-opsOfJob)/opsOfAdded, (x.post.MaxOps()-opsOfJob)/opsOfMoved
	for more, fits := range []bool{true, false} {
		if status := x.fitsTxn(&jobChange{added: make([]*work.Unit, added+more)}); (status == nil) != fits {
			t.Errorf("%d units added: %v", added+more, status)
		}
		if status := x.fitsTxn(&jobChange{moved: make([]*work.Unit, moved+more)}); (status == nil) != fits {
			t.Errorf("%d units moved: %v", moved+more, status)
		}
	}
}
