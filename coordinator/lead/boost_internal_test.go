package lead

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// full is a scene whose 16 GPUs are held, with the jobs first of priority 200 and
// second of priority 100 in the queue.
func full(t *testing.T) (x *scene, first, second *work.Unit) {
	t.Helper()
	x = newScene(t)
	x.running("a", 8, `"priority":300,`)
	x.running("b", 8, `"priority":300,`)
	return x, x.waits("first", 200), x.waits("second", 100)
}

// waits submits a job of one member with 8 GPUs, which waits.
func (x *scene) waits(name string, priority int) *work.Unit {
	x.t.Helper()
	u := x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"priority":%d,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`, name, priority))
	if x.answers(); !u.Waiting() || u.Attempt != nil {
		x.t.Fatalf("%s is %s", u.Path, u.Phase())
	}
	return u
}

// boosts asks for a boost and returns its answer, or the code and the text of the
// refusal; nothing where there is none yet.
func (x *scene) boosts(name string, o api.BoostOptions) string {
	x.clear()
	x.ask(BoostJob{Namespace: "default", Name: name, Boost: o})
	x.answers()
	return x.boosted()
}

func (x *scene) boosted() string {
	for _, e := range x.left {
		if e.Kind == post.AnswerClient && e.Token == 99 {
			if e.Status != nil {
				return fmt.Sprintf("%d %s", e.Status.Code, e.Status.Message)
			}
			b := e.Result.(*api.Boost)
			return fmt.Sprintf("%d to %d until %s, place %d", b.PreviousPriority, b.NewPriority, b.BoostExpires, b.NewQueuePosition)
		}
	}
	return ""
}

// order are the units that wait, the first first, with their priorities in the store.
func (x *scene) order() string {
	x.t.Helper()
	var all []string
	for _, k := range x.room.Order().Head(x.room.Order().Len()) {
		u := x.work.Units[k.Path]
		kv, found, _, err := x.kv.Get(x.t.Context(), x.stored(u).Order().Key())
		if err != nil || !found || !strings.HasPrefix(kv.Key, record.OrderPrefix) {
			x.t.Errorf("%s has no key of its place: %v", u.Path, err)
		}
		all = append(all, fmt.Sprintf("%s %d", u.Record.Name, x.stored(u).Priority))
	}
	return strings.Join(all, ", ")
}

var hour = api.BoostOptions{NewPriority: 250, Duration: "1h", Reason: "r", ApprovedBy: "p"}

func TestABoostRaisesAJobForAWhile(t *testing.T) {
	x, _, second := full(t)
	if got, want := x.order(), "first 200, second 100"; got != want {
		t.Fatalf("the order is %s, want %s", got, want)
	}
	until := x.clock.Add(time.Hour)
	if got, want := x.boosts("second", hour), fmt.Sprintf("100 to 250 until %s, place 1", until.UTC().Format(time.RFC3339)); got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
	if got, want := x.order(), "second 250, first 200"; got != want {
		t.Errorf("boosted the order is %s, want %s", got, want)
	}
	if b := x.jobObject(second.Job).Status.Boost; b == nil || b.Priority != 250 || b.Reason != "r" || b.ApprovedBy != "p" {
		t.Errorf("the job shows %+v", b)
	}
	x.check()
	x.pass(until.Sub(x.clock) + work.ClockError - time.Millisecond)
	if x.answers(); x.order() != "second 250, first 200" {
		t.Errorf("before its end the order is %s", x.order())
	}
	x.pass(time.Millisecond)
	x.answers()
	if got, want := x.order(), "first 200, second 100"; got != want {
		t.Errorf("after its end the order is %s, want %s", got, want)
	}
	if b := x.jobObject(second.Job).Status.Boost; b != nil {
		t.Errorf("after its end the job shows %+v", b)
	}
	x.check()
}

// A later boost replaces the one before, and the end of that one changes nothing.
func TestALaterBoostReplacesTheOneBefore(t *testing.T) {
	x, _, _ := full(t)
	x.boosts("second", hour)
	x.pass(30 * time.Minute)
	if got := x.boosts("second", api.BoostOptions{NewPriority: 150, Duration: "2h"}); !strings.HasPrefix(got, "250 to 150 until ") || !strings.HasSuffix(got, "place 2") {
		t.Errorf("answer %q", got)
	}
	x.pass(time.Hour)
	if x.answers(); x.order() != "first 200, second 150" {
		t.Errorf("at the end of the first boost the order is %s", x.order())
	}
	x.pass(time.Hour + work.ClockError)
	if x.answers(); x.order() != "first 200, second 100" {
		t.Errorf("at the end of the second boost the order is %s", x.order())
	}
}

// The instant is in the store: the next leader ends the boost.
func TestTheNextLeaderEndsABoost(t *testing.T) {
	x, _, _ := full(t)
	x.boosts("second", hour)
	x.pass(50 * time.Minute)
	x.answers()
	next := x.succeeded()
	next.give(ResumeWork{})
	if next.answers(); next.order() != "second 250, first 200" {
		t.Fatalf("after an election the order is %s", next.order())
	}
	next.pass(10*time.Minute + work.ClockError)
	if next.answers(); next.order() != "first 200, second 100" {
		t.Errorf("after the end of the boost the order is %s", next.order())
	}
}

// A unit that starts keeps the greater priority until it is back in the queue, also
// beyond the end of the boost; it comes back with its own priority then.
func TestAUnitThatStartsKeepsItsBoost(t *testing.T) {
	x, _, second := full(t)
	x.boosts("second", hour)
	x.leaves("a")
	x.settles(x.work.Units["default/alloc/a/0"], grant.Tombstone)
	x.settles(second, grant.Reserved)
	x.settles(second, grant.Held)
	x.pass(2 * time.Hour)
	if x.answers(); second.Phase() != api.Running || x.stored(second).Priority != 250 {
		t.Fatalf("the unit is %s with priority %d", second.Phase(), x.stored(second).Priority)
	}
	if second.Job.Record.Boost != nil {
		t.Error("the record of the job still has the boost")
	}
	x.finish(func() { x.evict(second, txn.EvictAsked{Reason: "Drained"}) })
	x.settles(second, grant.Tombstone)
	if got := x.stored(second); got.Priority != 100 {
		t.Errorf("evicted it is %s with priority %d, want 100", got.Phase, got.Priority)
	}
	x.check()
}

func TestBoostsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		job  string
		o    api.BoostOptions
		want string
	}{
		"nobody's job":         {"third", hour, "404 "},
		"not above its own":    {"second", api.BoostOptions{NewPriority: 100, Duration: "1h"}, "422 newPriority: 100 is not above 100, the priority of job second"},
		"above the ceiling":    {"second", api.BoostOptions{NewPriority: 1001, Duration: "1h"}, "403 "},
		"nothing of it waits":  {"runs", hour, "409 job runs is Running, and no member of it waits"},
		"a job that is ending": {"ended", hour, "409 job ended is ending"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := sceneRules()
			ceiling := int32(1000)
			rules.Namespaces = map[string]Namespace{"default": {Admission: "queue", PriorityCeiling: &ceiling}}
			x := newSceneOf(t, rules)
			runs := x.submitDocument([]byte(`{"metadata":{"name":"runs"},"spec":{"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
			x.answers()
			x.settles(runs, grant.Reserved)
			x.running("b", 8, "")
			x.waits("second", 100)
			ended := x.waits("ended", 1)
			x.finish(func() { x.cancelJob(ended.Job, record.Cancellation{Reason: "r"}, func(*api.Status) {}) })
			before := x.order()
			if got := x.boosts(c.job, c.o); !strings.HasPrefix(got, c.want) {
				t.Errorf("answer %q, want %q", got, c.want)
			}
			if x.order() != before {
				t.Errorf("the order was %s, and is %s", before, x.order())
			}
			x.check()
		})
	}
}

// A boost of unknown outcome that has landed counts.
func TestABoostOfUnknownOutcomeCounts(t *testing.T) {
	x, _, _ := full(t)
	x.clear()
	x.ask(BoostJob{Namespace: "default", Name: "second", Boost: hour})
	x.loses(true)
	x.answers()
	if got := x.boosted(); !strings.HasPrefix(got, "100 to 250") {
		t.Errorf("answer %q", got)
	}
	if x.order() != "second 250, first 200" {
		t.Errorf("the order is %s", x.order())
	}
}

// A boosted job that may preempt takes the place of work of a lower priority.
func TestABoostedJobPreempts(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 8, `"priority":300,`)
	x.running("b", 8, `"priority":400,`)
	u := x.submitDocument([]byte(`{"metadata":{"name":"urgent"},"spec":{"priority":100,"template":{"spec":{"preemptionPolicy":"PreemptLowerPriority","resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
	if x.answers(); u.Attempt != nil {
		t.Fatal("it preempts work of a higher priority")
	}
	x.boosts("urgent", api.BoostOptions{NewPriority: 350, Duration: "1h"})
	x.answers()
	if u.Attempt == nil || !slices.Contains(u.Attempt.VictimPaths(), a.Path) {
		t.Errorf("the boosted job has no attempt that takes the place of %s", a.Path)
	}
	x.check()
}

// In a strict queue the units that a boost moves are judged by the new places of all of
// them: the second waits for the first.
func TestAStrictQueueJudgesBoostedUnitsTogether(t *testing.T) {
	x := newScene(t)
	x.running("a", 8, "")
	x.running("b", 8, "")
	x.do(func() { x.queues.SetRules("default", rule.Rules{Strict: true}) })
	ahead := x.waits("ahead", 200)
	u := x.submitDocument([]byte(`{"metadata":{"name":"pair"},"spec":{"parallelism":2,"priority":100,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
	x.answers()
	x.boosts("pair", hour)
	for path, want := range map[string]bool{ahead.Path: false, u.Path: true, u.Job.Units[1].Path: false} {
		if x.room.Offered(path) != want {
			t.Errorf("%s is offered: %t, want %t", path, !want, want)
		}
	}
	x.check()
}

// A unit that comes back into the queue while its boost ends has its job's own priority in
// the end, whichever Txn is first; one that comes back while a boost begins has the greater.
func TestAUnitThatComesBackWhileThePriorityChanges(t *testing.T) {
	for name, begins := range map[string]bool{"the boost begins": true, "the boost ends": false} {
		t.Run(name, func(t *testing.T) {
			x, _, second := full(t)
			u := x.submitDocument([]byte(`{"metadata":{"name":"third"},"spec":{"priority":50,"parallelism":2,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
			x.answers()
			x.do(func() {
				x.cancelJob(x.work.Units["default/job/first/0"].Job, record.Cancellation{Reason: "r"}, func(*api.Status) {})
			})
			x.finish(func() { x.cancelJob(second.Job, record.Cancellation{Reason: "r"}, func(*api.Status) {}) })
			if !begins {
				x.boosts("third", hour)
			}
			x.leaves("a")
			x.settles(x.work.Units["default/alloc/a/0"], grant.Tombstone)
			x.settles(u, grant.Reserved)
			x.says(u, grant.Held)
			x.submit("c", 8, `"priority":300,`) // takes the place that u leaves
			x.answers()
			x.finish(func() { x.evict(u, txn.EvictAsked{Reason: "Drained"}) })
			x.says(u, grant.Tombstone) // the Txn of its return has no answer
			want := int32(50)
			if begins {
				want = 250
				x.ask(BoostJob{Namespace: "default", Name: "third", Boost: hour})
			} else {
				x.pass(2 * time.Hour)
			}
			x.answers()
			x.pass(lastBackoff)
			x.answers()
			for _, of := range u.Job.Units {
				if got := x.stored(of); of.Waiting() && got.Priority != want || of.Record.Priority != got.Priority || of.Key.Priority != got.Priority {
					t.Errorf("%s is %s with priority %d, in memory %d, want %d", of.Path, got.Phase, got.Priority, of.Record.Priority, want)
				}
			}
			x.order()
			x.check()
		})
	}
}

// The end of a unit that is asked for while a change of its job is being written is carried
// out once that has its answer.
func TestAUnitEndsThatWasBeingWritten(t *testing.T) {
	for name, lands := range map[string]bool{"the change lands": true, "the change is refused": false} {
		t.Run(name, func(t *testing.T) {
			x, _, second := full(t)
			x.ask(BoostJob{Namespace: "default", Name: "second", Boost: hour})
			if !second.Life.IsBeingWritten() {
				t.Fatal("the boost is not being written")
			}
			x.do(func() { x.end(second, txn.ReleaseAsked{Reason: "r"}) })
			if !lands {
				x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, record.ErrUnknownOutcome})
			}
			x.answers()
			if got := x.stored(second).Phase; got != string(api.Cancelled) {
				t.Errorf("the unit is %s in the store, want Cancelled", got)
			}
			if got, want := x.order(), "first 200"; got != want {
				t.Errorf("the order is %s, want %s", got, want)
			}
		})
	}
}

// A job has one alarm for its boost, however often it is boosted.
func TestAJobHasOneAlarmForItsBoosts(t *testing.T) {
	x, _, _ := full(t)
	x.boosts("second", hour)
	before := x.post.Alarms()
	for range 100 {
		x.pass(time.Second)
		x.boosts("second", hour)
	}
	if got := x.post.Alarms(); got > before {
		t.Errorf("%d alarms after 100 more boosts, %d before", got, before)
	}
}

// A boost raises the members of a job that wait above those that run. They do not take the
// place of their own job.
func TestABoostedMemberLeavesItsOwnJobAlone(t *testing.T) {
	for name, gang := range map[string]string{"growth of a gang": `"gangScheduling":{"minMembers":2},`, "members by themselves": ""} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u := x.submitDocument([]byte(`{"metadata":{"name":"train"},"spec":{"priority":100,"parallelism":3,"template":{"spec":{"preemptionPolicy":"PreemptLowerPriority",` + gang + `"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
			for _, v := range u.Job.Units {
				if x.answers(); v.Attempt != nil {
					x.holdsAll(v)
				}
			}
			last := u.Job.Units[len(u.Job.Units)-1]
			if x.answers(); !last.Waiting() || last.Attempt != nil || u.Phase() != api.Running {
				t.Fatalf("%s is %s, %s is %s", u.Path, u.Phase(), last.Path, last.Phase())
			}
			if got := x.boosts("train", hour); !strings.HasPrefix(got, "100 to 250") {
				t.Fatalf("answer %q", got)
			}
			if x.answers(); last.Attempt != nil {
				t.Errorf("%s takes the place of %v", last.Path, last.Attempt.VictimPaths())
			}
			x.check()
		})
	}
}
