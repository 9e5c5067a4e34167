package lead

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestWhatHelps asks about a unit that waits for eight GPUs, and then does what a hint
// says: the leader does what the answer promised.
func TestWhatHelps(t *testing.T) {
	for name, c := range map[string]struct {
		code whatif.HintCode
		// do returns the unit that has an attempt then.
		do func(x *scene, b *work.Unit, h whatif.Hint) *work.Unit
	}{
		"another unit ends": {whatif.WaitFor, func(x *scene, b *work.Unit, h whatif.Hint) *work.Unit {
			ends := x.work.Units[h.Ends[0].Unit]
			x.leaves(ends.Record.Name)
			x.says(ends, grant.Tombstone)
			return b
		}},
		"it asks for less": {whatif.FewerGPUs, func(x *scene, _ *work.Unit, h whatif.Hint) *work.Unit {
			return x.submit("less", int(h.To)/int(resource.WholeDevice), "")
		}},
		"it may have others evicted": {whatif.HigherPriority, func(x *scene, _ *work.Unit, h whatif.Hint) *work.Unit {
			return x.submit("more", 8, fmt.Sprintf(`"priority":%d,"preemptionPolicy":"PreemptLowerPriority",`, h.To))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			x.running("a", 8, "")
			x.running("c", 6, "")
			b := x.accepted("b", 8, "")
			asked := x.explain(b, Asked{Operator: true})
			hints, _, _ := asked.snapshot.World().Help(asked.unit)
			answer := asked.Answer()
			if answer.Outlook.Can != api.CanLater || answer.Reason.Code != "Insufficient" && answer.Reason.Code != "Fragmented" {
				t.Fatalf("it can run %s, and waits for %+v", answer.Outlook.Can, answer.Reason)
			}
			i := slices.IndexFunc(hints, func(h whatif.Hint) bool { return h.Code == c.code })
			if i < 0 || len(answer.Help) != len(hints) || answer.Help[i].Code != string(c.code) {
				t.Fatalf("the hints are %+v, the answer has %+v", hints, answer.Help)
			}
			u := c.do(x, b, hints[i])
			if x.answers(); u.Attempt == nil {
				t.Errorf("after %+v it still waits", hints[i])
			}
		})
	}
}

// TestAQuestionAboutAUnitThatCanNeverRun names the bound.
func TestAQuestionAboutAUnitThatCanNeverRun(t *testing.T) {
	x := newScene(t)
	u := x.accepted("a", 9, "")
	if o := x.explain(u, Asked{Operator: true}).Answer().Outlook; o.Can != api.CanNever {
		t.Errorf("the outlook is %+v", o)
	}
	running := x.running("b", 1, "")
	if a := x.explain(running, Asked{Operator: true}).Answer(); a.Outlook != nil || len(a.Help) > 0 {
		t.Errorf("a unit that runs has the outlook %+v and the help %+v", a.Outlook, a.Help)
	}
}

// TestQuestionsAreAnsweredBesideTheLeader is for the race detector: the leader goes on
// while others answer.
func TestQuestionsAreAnsweredBesideTheLeader(t *testing.T) {
	x := newScene(t)
	x.running("a", 8, "")
	waits := x.accepted("waits", 9, "")
	var readers sync.WaitGroup
	for i := range 8 {
		asked := x.explain(waits, Asked{Operator: true})
		readers.Go(func() {
			if a := asked.Answer(); a.Outlook.Can != api.CanNever {
				t.Errorf("the outlook is %+v", a.Outlook)
			}
		})
		name := fmt.Sprintf("u%d", i)
		x.running(name, 1, "")
		x.leaves(name)
		x.answers()
	}
	readers.Wait()
}

// TestAnAnswerHasTheBestOutlookOfItsAlternatives, and the state of the nodes for each.
func TestAnAnswerHasTheBestOutlookOfItsAlternatives(t *testing.T) {
	x := newScene(t)
	u := x.accepted("a", 9, `"suspend":true,"alternatives":[{"resources":{"requests":{"nvidia.com/gpu":"8"}}}],`)
	x.wants(u, `{"suspend":false}`)
	for _, id := range []resource.NodeID{"n1", "n2"} {
		x.hear(grant.HealthChanged{Node: id, DiskFull: true})
	}
	x.answers()
	a := x.explain(u, Asked{Operator: true}).Answer()
	if len(a.Alternatives) != 1 || a.Alternatives[0].Reason.Code != "DiskFull" || a.Outlook.Can != api.CanLater {
		t.Errorf("the outlook is %+v, the alternatives are %+v", a.Outlook, a.Alternatives)
	}
}
