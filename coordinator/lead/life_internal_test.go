package lead

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// fails has a member end with a code, and all agents be rid of the unit.
func (x *scene) fails(u *work.Unit, member, code int, reason string) {
	x.t.Helper()
	x.ends(u, member, code, reason)
	x.answers()
	x.settles(u, grant.Tombstone)
}

// life shows a job as its owner sees it.
func (x *scene) life(j *work.Job) string {
	s := x.jobObject(j).Status
	text := fmt.Sprintf("%s, active %d, succeeded %d, failed %d, retries %d", s.Phase, s.Active, s.Succeeded, s.Failed, s.Retries)
	if s.NextRetryTime != "" {
		text += ", next " + s.NextRetryTime
	}
	if len(s.Conditions) > 0 {
		text += ", " + s.Conditions[0].Type + "/" + s.Conditions[0].Reason
	}
	return text
}

// A gang starts again after a failure, twice as late each time, until its retries are
// used. Each start is a new transaction.
func TestAGangStartsAgainAfterAFailure(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("train", 2, `"backoffLimit":2,`, gangOfTwo)
	seen := map[string]bool{}
	for retry, delay := range []time.Duration{10 * time.Second, 20 * time.Second} {
		x.holdsAll(u)
		if tx := string(u.Attempt.Machine.ID()); seen[tx] {
			t.Fatalf("retry %d runs in %s again", retry, tx)
		} else {
			seen[tx] = true
		}
		x.fails(u, 1, 7, "Completed")
		next := x.clock.Add(delay).UTC().Format(time.RFC3339)
		want := fmt.Sprintf("Queued, active 0, succeeded 0, failed 0, retries %d, next %s, Queued/RestartBackOff", retry+1, next)
		if got := x.life(u.Job); got != want {
			t.Errorf("after failure %d the job is\n%s, want\n%s", retry+1, got, want)
		}
		if got := x.jobObject(u.Job).Status.Message; !strings.HasPrefix(got, fmt.Sprintf("train-1 exited with code 7; retry %d of 2 is at ", retry+1)) {
			t.Errorf("message %q", got)
		}
		x.pass(delay - time.Millisecond)
		if x.answers(); u.Attempt != nil {
			t.Fatalf("retry %d is begun before its time", retry+1)
		}
		x.check()
		x.pass(time.Millisecond)
		if x.answers(); u.Attempt == nil {
			t.Fatalf("retry %d is not begun at its time", retry+1)
		}
	}
	x.holdsAll(u)
	x.fails(u, 0, 1, "Completed")
	if got, want := x.life(u.Job), "Failed, active 0, succeeded 0, failed 2, retries 2, Failed/BackoffLimitExceeded"; got != want {
		t.Errorf("at the end the job is %s, want %s", got, want)
	}
	if got := x.jobObject(u.Job).Status.Message; got != "train-0 exited with code 1; the job has used the 2 retries of its backoffLimit" {
		t.Errorf("message %q", got)
	}
	x.check()
}

// Only a failure of a command counts.
func TestAnEndWithoutBlameIsNotCounted(t *testing.T) {
	for name, end := range map[string]func(*scene, *work.Unit){
		"an eviction": func(x *scene, u *work.Unit) {
			x.finish(func() { x.evict(u, txn.EvictAsked{GraceSeconds: 30, Reason: "Drained"}) })
			x.ends(u, 0, 143, "Stopped")
		},
		"its host was started anew": func(x *scene, u *work.Unit) { x.ends(u, 0, 255, "NodeRestarted") },
		"its owner suspends it": func(x *scene, u *work.Unit) {
			x.changes(u, suspend)
			x.ends(u, 0, 143, "Stopped")
			x.wants(u, resume)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.submitLife("train", 2, `"backoffLimit":0,`, gangOfTwo)
			x.holdsAll(u)
			end(x, u)
			x.answers()
			x.settles(u, grant.Tombstone)
			if got := x.stored(u); u.Attempt == nil || got.Retries != 0 || got.RetryMillis != 0 {
				t.Errorf("the unit is %s with %d retries, want it to be tried again at once without any", got.Phase, got.Retries)
			}
			x.check()
		})
	}
}

// The count and the next try are in the store: a later leader goes on with both, and
// counts a failure once that the leader before it has begun to write.
func TestTheRetriesOutliveTheLeader(t *testing.T) {
	for name, c := range map[string]struct {
		released bool // before the leader ends
		delay    time.Duration
	}{
		"while the unit waits":             {true, 10 * time.Second},
		"while its agents stop the others": {false, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.submitLife("train", 2, `"backoffLimit":3,`, gangOfTwo)
			x.holdsAll(u)
			x.ends(u, 1, 7, "Completed")
			x.answers()
			if c.released {
				x.settles(u, grant.Tombstone)
			}
			next := x.succeeded()
			next.give(ResumeWork{})
			next.answers()
			for _, id := range []resource.NodeID{"n1", "n2"} {
				next.hear(next.hosts[id])
			}
			next.answers()
			u = next.work.Units[u.Path]
			if !c.released && u.Attempt != nil {
				next.settles(u, grant.Tombstone)
			}
			if got := next.stored(u); got.Retries != 1 || got.Retry != 1 || u.Attempt != nil {
				t.Fatalf("the unit is %s with %d retries, the last is %d", got.Phase, got.Retries, got.Retry)
			}
			if !strings.Contains(next.life(u.Job), "Queued/RestartBackOff") {
				t.Errorf("the job is %s", next.life(u.Job))
			}
			next.pass(c.delay - time.Millisecond)
			if next.answers(); u.Attempt != nil {
				t.Fatal("the retry is begun before its time")
			}
			next.pass(time.Millisecond)
			if next.answers(); u.Attempt == nil {
				t.Error("the retry is not begun at its time")
			}
			next.check()
		})
	}
}

// A job that is cancelled while a unit waits for its retry, or while the failed run is
// still being stopped, ends at once.
func TestACancelledJobIsNotStartedAgain(t *testing.T) {
	for name, released := range map[string]bool{"while the unit waits": true, "while the others are stopped": false} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.submitLife("train", 2, "", gangOfTwo)
			x.holdsAll(u)
			x.ends(u, 1, 7, "Completed")
			x.answers()
			cancel := func() {
				x.do(func() {
					x.cancelJob(u.Job, record.Cancellation{Reason: "UserRequested", GraceSeconds: 30}, func(*api.Status) {})
				})
				x.answers()
			}
			if !released {
				cancel()
			}
			x.settles(u, grant.Tombstone)
			if released {
				cancel()
			}
			if got := api.Phase(u.Job.Record.Phase); got != api.Cancelled || u.Phase() != api.Cancelled {
				t.Errorf("the job is %s and its unit %s, want both Cancelled", got, u.Phase())
			}
			x.pass(time.Minute)
			if x.answers(); u.Attempt != nil {
				t.Error("the unit is tried")
			}
			x.check()
		})
	}
}

// activeDeadlineSeconds counts over the retries, and a retry that would begin after it
// is not awaited.
func TestADeadlineCountsOverRetries(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("train", 2, `"activeDeadlineSeconds":60,`, gangOfTwo)
	x.holdsAll(u)
	x.pass(30 * time.Second)
	x.fails(u, 0, 1, "Completed")
	x.pass(10 * time.Second)
	x.answers()
	x.holdsAll(u)
	x.pass(15 * time.Second)
	x.fails(u, 0, 1, "Completed") // 20 s before the next try, 7 s before the end
	if got, want := x.life(u.Job), "Failed, active 0, succeeded 0, failed 2, retries 1, Failed/RetryBeyondDeadline"; got != want {
		t.Errorf("the job is %s, want %s", got, want)
	}
	want := "train-0 exited with code 1; not tried again: the next try, 20s later, would start after the 1m0s of activeDeadlineSeconds"
	if got := x.jobObject(u.Job).Status.Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	x.check()
}

// The completions of a job without a gang run at most parallelism at a time, in the order
// of their index.
func TestCompletionsRunAtParallelismAtATime(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("sweep", 1, `"completions":3,`, "")
	j := u.Job
	if len(j.Units) != 3 {
		t.Fatalf("%d units, want 3", len(j.Units))
	}
	for i, u := range j.Units {
		for k, other := range j.Units {
			if tried := other.Attempt != nil; tried != (k == i) && !other.Phase().Ended() {
				t.Fatalf("in step %d unit %d is tried: %t", i, k, tried)
			}
		}
		if i == 0 {
			if got := x.conditionOf(j.Units[1], "Scheduled").Reason; got != "ParallelismReached" {
				t.Errorf("the second member waits for %s", got)
			}
		}
		x.clear()
		x.holdsAll(u)
		for _, s := range x.starts() {
			if s.First != i {
				t.Errorf("start of index %d, want %d", s.First, i)
			}
		}
		x.check()
		x.fails(u, 0, 0, "Completed")
	}
	if got, want := x.life(j), "Succeeded, active 0, succeeded 3, failed 0, retries 0, Complete/CompletionsReached"; got != want {
		t.Errorf("the job is %s, want %s", got, want)
	}
	x.check()
}

// A greater parallelism lets more completions run; a smaller one ends none.
func TestTheParallelismOfCompletionsChanges(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("sweep", 1, `"completions":3,`, "")
	j := u.Job
	x.changes(u, `{"parallelism":2}`)
	if j.Units[1].Attempt == nil || j.Units[2].Attempt != nil {
		t.Fatal("want the second member to be tried and the third to wait")
	}
	x.holdsAll(u)
	x.holdsAll(j.Units[1])
	x.changes(u, `{"parallelism":1}`)
	x.fails(u, 0, 0, "Completed")
	if j.Units[1].Phase() != api.Running || j.Units[2].Attempt != nil || len(j.Units) != 3 {
		t.Errorf("units %s and %s, want the second to run on and the third to wait", j.Units[1].Phase(), j.Units[2].Phase())
	}
	x.check()
}

// A unit that waits for its retry leaves its turn to another.
func TestADelayedUnitLeavesItsTurn(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("sweep", 1, `"completions":2,`, "")
	x.holdsAll(u)
	x.fails(u, 0, 1, "Completed")
	second := u.Job.Units[1]
	if second.Attempt == nil || u.Attempt != nil {
		t.Fatalf("the units are %s and %s, want the second to be tried", u.Life.Phase(), second.Life.Phase())
	}
	x.holdsAll(second)
	x.pass(time.Minute)
	if x.answers(); u.Attempt != nil {
		t.Error("both units run, which is more than the parallelism")
	}
	x.fails(second, 0, 0, "Completed")
	if u.Attempt == nil {
		t.Error("the first unit is not tried again")
	}
	x.check()
}

// The leader that has written the instant of the next try had a clock far ahead: the wait
// is no longer than the delay.
func TestAnInstantOfAClockAheadIsBounded(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("train", 2, `"backoffLimit":3,`, gangOfTwo)
	x.holdsAll(u)
	x.fails(u, 1, 7, "Completed")
	x.clock = x.clock.Add(-time.Hour)
	next := x.succeeded()
	next.give(ResumeWork{})
	for _, id := range []resource.NodeID{"n1", "n2"} {
		next.hear(next.hosts[id])
	}
	next.answers()
	u = next.work.Units[u.Path]
	if next.pass(9 * time.Second); u.Attempt != nil {
		t.Error("the retry is begun before its delay")
	}
	if got, want := u.Record.RetryMillis, next.clock.Add(time.Second).UnixMilli(); got != want {
		t.Errorf("the next try is at %d, want %d", got, want)
	}
	if next.pass(time.Second); u.Attempt == nil {
		t.Error("the retry is not begun after its delay")
	}
	must(next.Check()) // the store has the instant of the other clock
}
