package lead

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestWhatIf asks about a unit that waits for eight GPUs, and then does what a hint
// says: the leader does what the answer promised.
func TestWhatIf(t *testing.T) {
	for name, c := range map[string]struct {
		code whatif.HintCode
		// do returns the unit that has an attempt then.
		do func(x *scene, b *unit, h whatif.Hint) *unit
	}{
		"another unit ends": {whatif.WaitFor, func(x *scene, b *unit, h whatif.Hint) *unit {
			ends := x.units[h.Ends[0].Unit]
			x.leaves(ends.record.Name)
			x.says(ends, grant.Tombstone)
			return b
		}},
		"it asks for less": {whatif.FewerGPUs, func(x *scene, _ *unit, h whatif.Hint) *unit {
			return x.submit("less", int(h.To)/int(resource.WholeDevice), "")
		}},
		"it may have others evicted": {whatif.HigherPriority, func(x *scene, _ *unit, h whatif.Hint) *unit {
			return x.submit("more", 8, fmt.Sprintf(`"priority":%d,"preemptionPolicy":"PreemptLowerPriority",`, h.To))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			x.running("a", 8, "")
			x.running("c", 6, "")
			b := x.submit("b", 8, "")
			x.answers()
			a, ahead := x.question(b).Answer()
			if a.Outcome.Action != sched.Wait || a.Outcome.Evidence.Code != sched.NoPlace || len(a.Never) > 0 || ahead != 0 {
				t.Fatalf("the outcome is %+v, never for %+v, behind %d", a.Outcome, a.Never, ahead)
			}
			i := slices.IndexFunc(a.Hints, func(h whatif.Hint) bool { return h.Code == c.code })
			if i < 0 {
				t.Fatalf("the hints are %+v", a.Hints)
			}
			u := c.do(x, b, a.Hints[i])
			if x.answers(); u.attempt == nil {
				t.Errorf("after %+v it still waits", a.Hints[i])
			}
		})
	}
}

// TestAQuestionAboutAUnitThatCanNeverRun names the bound.
func TestAQuestionAboutAUnitThatCanNeverRun(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 9, "")
	x.answers()
	a, _ := x.question(u).Answer()
	want := whatif.Bound{Code: whatif.NodeTooSmall, Nodes: 2, Resource: resource.GPU, Want: 9000, Have: 8000}
	if len(a.Never) != 1 || fmt.Sprint(a.Never[0]) != fmt.Sprint(want) {
		t.Errorf("never for %+v, want %+v", a.Never, want)
	}
	running := x.running("b", 1, "")
	if a, _ := x.question(running).Answer(); a != nil {
		t.Errorf("a unit that runs would %+v", a)
	}
}

// TestQuestionsAreAnsweredBesideTheLeader is for the race detector: the leader goes on
// while others answer.
func TestQuestionsAreAnsweredBesideTheLeader(t *testing.T) {
	x := newScene(t)
	x.running("a", 8, "")
	waits := x.submit("waits", 9, "")
	x.answers()
	var readers sync.WaitGroup
	for i := range 8 {
		x.ask(AskWhatIf{Namespace: "default", Name: "waits"})
		q := x.question(waits)
		readers.Go(func() {
			if a, _ := q.Answer(); a.Outcome.Action != sched.Wait {
				t.Errorf("it would %s", a.Outcome.Action)
			}
		})
		name := fmt.Sprintf("u%d", i)
		x.running(name, 1, "")
		x.leaves(name)
		x.answers()
	}
	readers.Wait()
}
