package lead

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// depends submits a job of one member with dependencies, "afterok:a afterany:b".
func (x *scene) depends(name, dependencies string) *work.Unit {
	x.t.Helper()
	return x.submitLife(name, 1, `"backoffLimit":0,`+dependenciesOf(dependencies), "")
}

func dependenciesOf(text string) string {
	var list []string
	for _, d := range strings.Fields(text) {
		kind, job, _ := strings.Cut(d, ":")
		list = append(list, fmt.Sprintf(`{"type":%q,"job":%q}`, kind, job))
	}
	return `"dependencies":[` + strings.Join(list, ",") + `],`
}

// refuses is the refusal of a job of one member with dependencies.
func (x *scene) refuses(name, dependencies string) string {
	x.t.Helper()
	document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{%s"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, name, dependenciesOf(dependencies))
	doc, status := api.DecodeJob(document)
	if status != nil {
		return status.Message
	}
	s, status := x.submissionOfJob(Submitted{Namespace: "default", Document: document}, doc)
	if status == nil {
		x.do(func() { _, _, status = x.accept(s) })
	}
	if status == nil {
		return ""
	}
	return fmt.Sprint(status.Code, " ", status.Message)
}

// suspended submits a job of one member that has not begun, and is stored.
func (x *scene) suspended(name string) *work.Unit {
	x.t.Helper()
	u := x.submitLife(name, 1, `"backoffLimit":0,"suspend":true,`, "")
	x.answers()
	return u
}

// runs has a job of one member begin.
func (x *scene) runs(u *work.Unit) {
	x.t.Helper()
	if u.IsSuspended() {
		x.changes(u, resume)
	}
	x.holdsAll(u)
}

// succeeds has a job of one member that runs end with success.
func (x *scene) succeeds(u *work.Unit) { x.fails(u, 0, 0, "Completed") }

// cancels cancels a job, and deletes it where remove is set.
func (x *scene) cancels(j *work.Job, remove bool) {
	x.t.Helper()
	x.do(func() {
		x.cancelJob(j, record.Cancellation{Reason: "UserRequested", Remove: remove}, func(*api.Status) {})
	})
	x.answers()
}

// How the end of another job decides a dependency, for each way in which a job ends. The
// other job may end before the job with the dependency comes, and another leader may take
// over at any point.
func TestADependencyFollowsTheOtherJob(t *testing.T) {
	const waits, runs, never = "waits", "runs", "DependencyNeverSatisfied"
	ends := map[string]struct {
		end  func(*scene, *work.Unit)
		want map[string]string
	}{
		"nothing": {func(*scene, *work.Unit) {}, map[string]string{"after": waits, "afterok": waits, "afternotok": waits, "afterany": waits}},
		"begins":  {func(x *scene, u *work.Unit) { x.runs(u) }, map[string]string{"after": runs, "afterok": waits, "afternotok": waits, "afterany": waits}},
		"succeeds": {func(x *scene, u *work.Unit) { x.runs(u); x.succeeds(u) },
			map[string]string{"after": runs, "afterok": runs, "afternotok": never, "afterany": runs}},
		"fails": {func(x *scene, u *work.Unit) { x.runs(u); x.fails(u, 0, 3, "Completed") },
			map[string]string{"after": runs, "afterok": never, "afternotok": runs, "afterany": runs}},
		"is cancelled": {func(x *scene, u *work.Unit) { x.cancels(u.Job, false) },
			map[string]string{"after": runs, "afterok": never, "afternotok": runs, "afterany": runs}},
		"is deleted": {func(x *scene, u *work.Unit) { x.cancels(u.Job, true) },
			map[string]string{"after": runs, "afterok": never, "afternotok": runs, "afterany": runs}},
	}
	for how, c := range ends {
		for kind, want := range c.want {
			for _, order := range []string{"before", "after", "after, and a leader follows", "in the hands of two leaders"} {
				if how == "is deleted" && order == "before" {
					continue // there is no such job then
				}
				t.Run(how+"/"+kind+"/"+order, func(t *testing.T) {
					x := newWorkScene(t)
					other := x.suspended("other")
					if order == "before" {
						c.end(x, other)
					}
					u := x.depends("second", kind+":other")
					if order == "in the hands of two leaders" {
						x = x.succeeded()
						x.give(ResumeWork{})
						x.answers()
						x.hearsHosts()
						other, u = x.work.Units[other.Path], x.work.Units[u.Path]
					}
					if order != "before" {
						c.end(x, other)
					}
					if strings.HasSuffix(order, "follows") {
						x = x.succeeded()
						x.give(ResumeWork{})
						x.answers()
						x.hearsHosts()
						u = x.work.Units[u.Path]
					}
					got := waits
					switch {
					case u.Attempt != nil:
						got = runs
					case u.Phase() == api.Failed:
						got = u.Job.Record.Reason
					case u.Hold != work.HoldDependency:
						got = fmt.Sprintf("hold %d", u.Hold)
					}
					if got != want {
						t.Errorf("the job %s, want it to: %s; message %q", got, want, u.Job.Record.Message)
					}
					x.check()
				})
			}
		}
	}
}

// hearsHosts opens the streams of all agents again.
func (x *scene) hearsHosts() {
	for _, id := range []resource.NodeID{"n1", "n2"} {
		x.hear(x.hosts[id])
	}
	x.answers()
}

// A job waits for all its dependencies, one after the other, also where a job comes later.
func TestAJobWaitsForAllItsDependencies(t *testing.T) {
	x := newWorkScene(t)
	first := x.depends("first", "")
	u := x.depends("last", "afterok:first afterany:later")
	if got := x.jobObject(u.Job); got.Status.Message != "waits for job first to succeed (afterok), and for job later to end (afterany), which does not exist" ||
		got.Status.Conditions[0].Reason != "WaitingForDependency" {
		t.Errorf("the job is %+v", got.Status)
	}
	x.runs(first)
	x.succeeds(first)
	later := x.depends("later", "")
	if got := x.jobObject(u.Job).Status.Dependencies; u.Attempt != nil || len(got) != 2 || got[0].State != api.DependencySatisfied || got[1].State != api.DependencyWaits {
		t.Errorf("after the first the dependencies are %v", got)
	}
	x.cancels(first.Job, true) // its answer is durable
	x.runs(later)
	x.fails(later, 0, 1, "Completed")
	if u.Attempt == nil {
		t.Error("the job is not tried once all is done")
	}
	x.check()
}

// The other units of a job whose dependency never comes true end with the first.
func TestAllUnitsEndWithADependencyThatNeverComesTrue(t *testing.T) {
	x := newWorkScene(t)
	first := x.suspended("first")
	u := x.submitLife("last", 3, dependenciesOf("afterok:first"), "")
	next := x.depends("next", "afterok:last")
	x.cancels(first.Job, true)
	if got := x.life(u.Job); got != "Failed, active 0, succeeded 0, failed 1, retries 0, Failed/DependencyNeverSatisfied" {
		t.Errorf("the job is %s", got)
	}
	if got := x.life(next.Job); got != "Failed, active 0, succeeded 0, failed 1, retries 0, Failed/DependencyNeverSatisfied" {
		t.Errorf("the job after it is %s", got)
	}
	if got := next.Job.Record.Message; got != "DependencyNeverSatisfied: afterok:last, and job last is Failed" {
		t.Errorf("message %q", got)
	}
	if x.work.Jobs["default/first"] != nil {
		t.Error("the deleted job stays")
	}
	x.check()
}

// A job that is deleted stays until the answers that others wait for are durable: the
// leader may end after any of the writes.
func TestADeletedJobStaysUntilItsAnswerIsDurable(t *testing.T) {
	for writes, gone := 0, false; !gone; writes++ {
		x := newWorkScene(t)
		first := x.suspended("first")
		last := x.depends("last", "afternotok:first")
		x.do(func() {
			x.cancelJob(first.Job, record.Cancellation{Reason: "UserRequested", Remove: true}, func(*api.Status) {})
		})
		for range writes {
			x.answer()
		}
		gone = x.work.Jobs["default/first"] == nil
		y := x.succeeded()
		y.give(ResumeWork{})
		y.answers()
		want := 1
		if writes == 0 { // the wish is lost
			want = 0
		}
		if met := y.work.Units[last.Path].Job.Record.Met; len(met) != want || (y.work.Jobs["default/first"] == nil) != (want == 1) {
			t.Errorf("after %d writes another leader finds %v met, and the deleted job is there: %t", writes, met, y.work.Jobs["default/first"] != nil)
		}
		y.check()
		if writes > 20 {
			t.Fatal("the job is never removed")
		}
	}
}

func TestCyclesAreRefused(t *testing.T) {
	x := newWorkScene(t)
	x.depends("a", "afterok:b afterok:b2")
	x.depends("b", "after:c")
	for name, c := range map[string]struct{ job, dependencies, want string }{
		"over two others": {"c", "afterany:x afternotok:a", "422 spec.dependencies: a cycle: c waits for a waits for b waits for c; leave out one of them"},
		"over one other":  {"b2", "after:a", "422 spec.dependencies: a cycle: b2 waits for a waits for b2; leave out one of them"},
		"itself":          {"e", "after:e", `spec.dependencies[0].job: "e": a job cannot wait for itself`},
	} {
		if got := x.refuses(c.job, c.dependencies); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	c := x.depends("c", "") // breaks it
	x.answers()
	x.runs(c)
	if got := x.refuses("d", "after:a after:b after:c"); got != "" {
		t.Errorf("no cycle: %q", got)
	}
	x.answers()
	x.check()
}

// A job that was suspended, cancelled or made smaller while it waited ends and goes on as
// any other.
func TestAJobThatWaitsForOthersObeysItsOwner(t *testing.T) {
	x := newWorkScene(t)
	first := x.depends("first", "")
	u := x.depends("last", "afterok:first")
	x.changes(u, suspend)
	x.runs(first)
	x.succeeds(first)
	if u.Attempt != nil || len(u.Job.Record.Met) != 1 {
		t.Fatalf("the suspended job has an attempt: %t, met %v", u.Attempt != nil, u.Job.Record.Met)
	}
	x.wants(u, resume)
	if x.answers(); u.Attempt == nil {
		t.Error("the job is not tried once it is resumed")
	}
	waits := x.depends("waits", "afterok:none")
	x.cancels(waits.Job, false)
	if got := api.Phase(waits.Job.Record.Phase); got != api.Cancelled {
		t.Errorf("the cancelled job is %s", got)
	}
	x.settles(u, grant.Reserved)
	x.check()
}

// The leader ends after the other job has, and before the answer is durable: the next
// leader writes it.
func TestAnAnswerThatWasNotWrittenIsWrittenByTheNextLeader(t *testing.T) {
	x := newWorkScene(t)
	first := x.suspended("first")
	last := x.depends("last", "afterok:first")
	x.runs(first)
	x.ends(first, 0, 0, "Completed")
	x.answers()
	x.says(first, grant.Tombstone)
	for !api.Phase(first.Job.Record.Phase).Ended() {
		x.answer()
	}
	y := x.takesOver()
	if got := y.work.Units[last.Path].Job.Record.Met; len(got) != 1 || len(last.Job.Record.Met) != 0 {
		t.Errorf("the next leader finds %v met, the one before had %v", got, last.Job.Record.Met)
	}
	y.check()
}
