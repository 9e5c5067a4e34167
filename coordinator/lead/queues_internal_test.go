package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/grant"
)

func TestAQueueTakesEachPlacementPolicy(t *testing.T) {
	x := newScene(t)
	for _, name := range place.Policies() {
		q := api.Queue{Metadata: api.ObjectMeta{Name: "q"}, Spec: api.QueueSpec{PlacementPolicy: name}}
		if status := q.Validate(); status != nil {
			t.Error(status)
		}
		x.queues.SetRules("q", edit.QueueRules(&q))
		if got, want := x.policyFor("q"), x.learner.Policy(name, x.state); got != want {
			t.Errorf("queue q is placed by %T, want %T", got, want)
		}
		if got, want := x.policyFor("other"), x.learner.Policy("", x.state); got != want {
			t.Errorf("another queue is placed by %T, want %T", got, want)
		}
	}
}

// A unit that waits for its next try after a failure, or that its job's parallelism holds
// back, holds back nobody in a strict queue.
func TestADelayedUnitHoldsBackNobodyInAStrictQueue(t *testing.T) {
	x := newWorkScene(t)
	x.do(func() { x.queues.SetRules("q", rule.Rules{Strict: true}) })
	u := x.submitLife("train", 1, `"queue":"q","backoffLimit":3,"completions":2,`, "")
	x.holdsAll(u)
	if got := standingOf(u.Job.Units[1]); got != rule.Aside {
		t.Errorf("beyond the parallelism the unit has standing %d, want %d", got, rule.Aside)
	}
	first := x.accepted("first", 1, `"queue":"q",`)
	if first.Attempt == nil {
		t.Fatal("the unit beyond the parallelism holds back the work behind it")
	}
	x.fails(u, 0, 7, "Completed")
	if u.Hold != work.HoldDelay {
		t.Fatalf("the unit that has failed is held %d", u.Hold)
	}
	second := x.accepted("second", 1, `"queue":"q",`)
	x.settles(first, grant.Reserved)
	if other := u.Job.Units[1]; other.Attempt != nil {
		x.holdsAll(other)
	}
	if second.Attempt == nil {
		t.Error("the unit that waits for its retry holds back the work behind it")
	}
	x.check()
}

// A queue on Hold starts nothing: the places that agents keep for work of an earlier
// leader are given up.
func TestAQueueOnHoldTakesNoPreemptionOver(t *testing.T) {
	x, d, g := keptPlace(t)
	x.do(func() { x.queues.SetRules(d.unit.Record.Queue, rule.Rules{Hold: true}) })
	if !d.over {
		t.Fatal("the preemption is not given up")
	}
	x.tellsOf(g)
	x.answers()
	if d.unit.Attempt != nil || d.unit.Adopting != "" || len(x.adoptions) != 0 {
		t.Errorf("the unit has an attempt or an adoption: %+v", d.unit)
	}
	x.check()
}

// A queue on Hold gives up a preemption whose victims have notice.
func TestAQueueOnHoldGivesUpAPreemption(t *testing.T) {
	x := newScene(t)
	_, b := x.claimed()
	x.do(func() { x.queues.SetRules(b.Record.Queue, rule.Rules{Hold: true}) })
	if x.answers(); b.Attempt != nil || b.Phase() != api.Pending {
		t.Errorf("the preemptor is %s, with an attempt: %t", b.Phase(), b.Attempt != nil)
	}
}
