package lead

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// wants asks for a change of the specification of an allocation or a job.
func (x *scene) wants(u *work.Unit, spec string) {
	x.t.Helper()
	x.clear()
	p := api.WorkPatch{Spec: json.RawMessage(spec)}
	if u.Job != nil {
		x.ask(PatchJob{"default", u.Record.Name, p})
		return
	}
	x.ask(PatchAllocation{"default", u.Record.Name, p})
}

// changes is wants, with all answers of the store.
func (x *scene) changes(u *work.Unit, spec string) {
	x.t.Helper()
	x.wants(u, spec)
	x.answers()
}

// refusedWith is the refusal that the last request was answered with, "" for none.
func (x *scene) refusedWith() string {
	for _, e := range x.left {
		if e.Kind == post.AnswerClient && e.Token == 99 && e.Status != nil {
			return fmt.Sprint(e.Status.Code, " ", e.Status.Message)
		}
	}
	return ""
}

// has reports what a unit's members are, and why they wait, as clients see it.
func (x *scene) has(u *work.Unit) string {
	shows := string(u.Phase())
	if u.Waiting() {
		shows += " " + x.conditionOf(u, "Scheduled").Reason
	}
	return shows
}

const (
	suspend = `{"suspend":true}`
	resume  = `{"suspend":false}`
)

func TestASuspendedAllocationDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		lead func(*scene) *work.Unit
		want string
	}{
		"it was suspended when it was submitted": {func(x *scene) *work.Unit {
			u := x.accepted("a", 1, `"suspend":true,`)
			return u
		}, "Pending Suspended"},
		"it is suspended while it waits, and there is room later": {func(x *scene) *work.Unit {
			r := x.running("r", 8, "")
			x.running("s", 8, "")
			u := x.accepted("a", 1, "")
			x.changes(u, suspend)
			x.finish(func() { x.end(r, releaseFor(api.DeleteOptions{})) })
			x.settles(r, grant.Tombstone)
			return u
		}, "Pending Suspended"},
		"it is suspended while it waits, and resumed": {func(x *scene) *work.Unit {
			u := x.accepted("a", 1, `"suspend":true,`)
			x.changes(u, resume)
			x.settles(u, grant.Reserved)
			return u
		}, "Running"},
		"null resumes it": {func(x *scene) *work.Unit {
			u := x.accepted("a", 1, `"suspend":true,`)
			x.changes(u, `{"suspend":null}`)
			x.settles(u, grant.Reserved)
			return u
		}, "Running"},
		"it is suspended while it runs: it has notice": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.changes(u, suspend)
			return u
		}, "Terminating"},
		"and waits once it has stopped": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.changes(u, suspend)
			x.settles(u, grant.Tombstone)
			return u
		}, "Pending Suspended"},
		"it is resumed while it stops, and runs again": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.changes(u, suspend)
			x.changes(u, resume)
			x.settles(u, grant.Tombstone)
			x.settles(u, grant.Reserved)
			return u
		}, "Running"},
		"it is resumed while the store ends its release": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.changes(u, suspend)
			x.says(u, grant.Tombstone)
			x.changes(u, resume)
			x.settles(u, grant.Reserved)
			return u
		}, "Running"},
		"it is suspended again while it stops": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			for _, wish := range []string{suspend, resume, suspend} {
				x.changes(u, wish)
			}
			x.settles(u, grant.Tombstone)
			return u
		}, "Pending Suspended"},
		"it is suspended while agents are asked for it": {func(x *scene) *work.Unit {
			u := x.submit("a", 1, "")
			x.wants(u, suspend)
			x.answers() // the attempt is given up, and then the unit stored
			x.pass(10 * time.Second)
			x.answers()
			return u
		}, "Pending Suspended"},
		"it is suspended while its commit is on the way": {func(x *scene) *work.Unit {
			u := x.submit("a", 1, "")
			x.says(u, grant.Reserved)
			x.changes(u, suspend)
			return u
		}, "Terminating"},
		"it is suspended while others make room for it": {func(x *scene) *work.Unit {
			_, b := x.claimed()
			x.changes(b, suspend)
			return b
		}, "Pending Suspended"},
		"it was evicted before: its end stays": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.finish(func() { x.evict(u, txn.EvictAsked{GraceSeconds: 1, Reason: "test"}) })
			x.wants(u, suspend)
			x.settles(u, grant.Tombstone)
			return u
		}, "Preempted"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u := c.lead(x)
			if got := x.has(u); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			x.check()
			if u.Waiting() && x.room.Offered(u.Path) {
				t.Error("a suspended unit may be tried")
			}
		})
	}
}

// TestASuspendedAllocationKeepsItsPlaceAndHoldsNothing: name, uid and place in the
// order are those that it had, and its charge ends with its release.
func TestASuspendedAllocationKeepsItsPlaceAndHoldsNothing(t *testing.T) {
	x := newScene(t)
	u := x.running("a", 8, "")
	before := u.Record
	last := x.accepted("b", 9, "")
	x.changes(u, suspend)
	if len(x.work.Attempts) == 0 {
		t.Error("its charge ended before its agents had stopped it")
	}
	x.settles(u, grant.Tombstone)
	if u.Record.UID != before.UID || u.Record.Sequence != before.Sequence || len(x.work.Attempts) != 0 {
		t.Errorf("it was %+v, is %+v, and %d attempts are left", before, u.Record, len(x.work.Attempts))
	}
	if first, second := x.room.Order().Position(u.Key), x.room.Order().Position(last.Key); first != 1 || second != 2 {
		t.Errorf("it has position %d, and %d the unit that came after it", first, second)
	}
	if x.second(); len(x.asked) > 0 {
		x.answers()
	}
	if got := x.waitsFor(u); got != "Suspended" {
		t.Errorf("the store has the reason %q", got)
	}
}

// TestAResumedUnitIsPlacedBeforeThoseThatCameAfterIt takes the order of arrival.
func TestAResumedUnitIsPlacedBeforeThoseThatCameAfterIt(t *testing.T) {
	x := newScene(t)
	r := x.running("r", 8, "")
	x.running("s", 8, "")
	a := x.submit("a", 8, `"suspend":true,`)
	b := x.accepted("b", 8, "")
	x.changes(a, resume)
	x.finish(func() { x.end(r, releaseFor(api.DeleteOptions{})) })
	x.settles(r, grant.Tombstone)
	if a.Attempt == nil || b.Attempt != nil {
		t.Errorf("a is tried: %t, b: %t", a.Attempt != nil, b.Attempt != nil)
	}
}

// TestANewLeaderGoesOnWithASuspension, whichever step was the last one.
func TestANewLeaderGoesOnWithASuspension(t *testing.T) {
	for steps := range 6 {
		x := newScene(t)
		u := x.running("a", 1, "")
		x.wants(u, suspend)
		for i := 0; i < steps && len(x.asked) > 0; i++ {
			if x.answer(); u.Attempt != nil && !u.Attempt.Machine.Freed() && u.Phase() == api.Terminating {
				x.says(u, grant.Tombstone)
			}
		}
		durable := u.IsSuspended()
		next := x.succeeded()
		next.give(ResumeWork{})
		next.answers()
		u = next.work.Units[u.Path]
		if durable && u.Phase() == api.Running {
			t.Errorf("after %d steps the next leader lets it run", steps)
		}
		if u.Attempt != nil && u.Phase() == api.Terminating {
			n := next.nodes[u.Attempt.Machine.Nodes()[0]]
			next.hear(grant.Replied{Node: n.view.ID, Tx: u.Attempt.Machine.ID(), Incarnation: n.incarnation, Revision: n.revision, State: grant.Tombstone})
			next.answers()
		}
		if durable && next.has(u) != "Pending Suspended" {
			t.Errorf("after %d steps it ends as %s", steps, next.has(u))
		}
	}
}

func TestASuspendedJobReleasesAllItsUnits(t *testing.T) {
	x := newScene(t)
	first := x.submitJob("j", 3, 1)
	x.answers()
	x.settles(first, grant.Reserved)
	grown := first.Job.Units[1]
	x.settles(grown, grant.Reserved)
	if x.has(first) != "Running" || x.has(grown) != "Running" {
		t.Fatalf("it is %s and %s", x.has(first), x.has(grown))
	}
	x.changes(first, suspend)
	if c := x.jobObject(first.Job).Status; c.Conditions[0].Reason != "Suspended" || c.Phase != api.Queued {
		t.Errorf("while it stops the job shows %+v", c)
	}
	x.says(first, grant.Tombstone)
	x.settles(grown, grant.Tombstone)
	x.pass(time.Minute)
	x.answers()
	if x.has(first) != "Pending Suspended" || x.has(grown) != "Pending Suspended" || len(x.work.Attempts) > 0 {
		t.Errorf("it is %s and %s, with %d attempts", x.has(first), x.has(grown), len(x.work.Attempts))
	}
	if c := x.jobObject(first.Job).Status; c.Conditions[0].Reason != "Suspended" {
		t.Errorf("the job shows %+v", c)
	}
	x.changes(first, resume)
	x.settles(first, grant.Reserved)
	x.settles(grown, grant.Reserved)
	if x.has(first) != "Running" || x.has(grown) != "Running" {
		t.Errorf("resumed, it is %s and %s", x.has(first), x.has(grown))
	}
}

// TestWhyNamesTheSuspension: never is no answer, even for what no node could hold.
func TestWhyNamesTheSuspension(t *testing.T) {
	for name, c := range map[string]struct {
		gpus       int
		help, then string
	}{
		"there is room":        {1, "muster resume allocation/a -n default: there is room for it now", ""},
		"no node could run it": {9, "muster resume allocation/a -n default: as things are it would wait: ", "9 GPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u := x.accepted("a", c.gpus, `"suspend":true,`)
			var e *api.Explanation
			x.do(func() { e = x.explain(u, Asked{}).Answer() })
			if e.Reason.Code != "Suspended" || e.Outlook.Can != api.CanLater || len(e.Help) != 1 || e.Help[0].Code != "Resume" ||
				!strings.HasPrefix(e.Help[0].Message, c.help) || !strings.Contains(e.Help[0].Message, c.then) {
				t.Errorf("why says %+v, %+v, %+v", e.Reason, e.Outlook, e.Help)
			}
		})
	}
}

func TestTheQueueChangesWhileWorkWaits(t *testing.T) {
	x := newScene(t)
	a, b := x.submit("a", 9, ""), x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":"j"},"spec":{"parallelism":3,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"9"}}}}}}`))
	x.answers()
	for _, u := range []*work.Unit{a, b} {
		x.changes(u, `{"queue":"night"}`)
		if got := x.refusedWith(); got != "" {
			t.Errorf("%s: %s", u.Path, got)
		}
	}
	for _, u := range append(b.Job.Units, a) {
		if u.Record.Queue != "night" || x.storedWaiting(u) == nil {
			t.Errorf("%s is in queue %s, and the store has %+v", u.Path, u.Record.Queue, x.storedWaiting(u))
		}
		old := u.Record
		old.Queue = "default"
		if _, found, _, _ := x.kv.Get(t.Context(), old.Order().Key()); found {
			t.Errorf("%s has its place in the former queue too", u.Path)
		}
	}
	if got := x.room.Order().Position(a.Key); got != 1 {
		t.Errorf("the position over all queues is %d", got)
	}
	x.put(record.JobKey("default", "j"), record.MustEncode(b.Job.Record)) // another has written it
	x.changes(b, `{"queue":"day"}`)
	if got := x.refusedWith(); !strings.HasPrefix(got, "503") || b.Record.Queue != "night" {
		t.Errorf("the store has refused the change: answered %q, in queue %s", got, b.Record.Queue)
	}
	r := x.running("r", 1, "")
	x.changes(r, `{"queue":"night"}`)
	if got := x.refusedWith(); got != "409 allocation r is Running: spec.queue can change only while the whole object waits; suspend it first, or submit it anew" {
		t.Errorf("of a unit that runs: %q", got)
	}
	next := x.succeeded()
	if u := next.work.Units[a.Path]; u.Record.Queue != "night" || next.waitsFor(u) == "" {
		t.Errorf("the next leader finds %+v", u.Record)
	}
}

func TestWhatAPatchOfTheSpecMayNotChange(t *testing.T) {
	x := newScene(t)
	a, j := x.submit("a", 9, ""), x.submitJob("j", 3, 9)
	x.answers()
	for name, c := range map[string]struct {
		u    *work.Unit
		spec string
		want string
	}{
		"the amounts of an allocation": {a, `{"resources":{"requests":{"nvidia.com/gpu":"1"}}}`, `422 spec.resources.requests["nvidia.com/gpu"]: "9" cannot become "1": the field is fixed once it is submitted; spec.suspend or spec.queue can change`},
		"the priority of a job":        {j, `{"priority":7}`, `422 spec.priority: nothing cannot become 7: the field is fixed once it is submitted; spec.suspend, spec.queue or spec.parallelism can change`},
		"a field beside one that may":  {j, `{"suspend":true,"template":{"spec":{"numaPolicy":"none"}}}`, `422 spec.template.spec.scheduling`},
		"a queue that is no name":      {a, `{"queue":"A b"}`, `422 spec.queue: "A b" is not a queue`},
		"no members":                   {j, `{"parallelism":0}`, `422 spec.parallelism: 0 is outside 1..4096`},
		"fewer members than the gang":  {j, `{"parallelism":1}`, `422 spec.template.spec.scheduling.gangScheduling.minMembers: 2 is more than spec.parallelism 1`},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a field beside one that may" {
				c.spec = `{"suspend":true,"template":{"spec":{"scheduling":{"numaPolicy":"none"}}}}`
			}
			x.wants(c.u, c.spec)
			if got := x.refusedWith(); !strings.HasPrefix(got, c.want) {
				t.Errorf("answered %q, want %q", got, c.want)
			}
			if len(x.asked) > 0 {
				t.Error("the store was asked")
			}
		})
	}
	t.Run("an equal value of a fixed field is no change", func(t *testing.T) {
		x.changes(a, `{"suspend":true,"resources":{"requests":{"nvidia.com/gpu":"9"}}}`)
		if got := x.refusedWith(); got != "" || !a.IsSuspended() {
			t.Errorf("answered %q", got)
		}
	})
}
