package lead

import (
	"testing"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
)

// A unit that has gone is not judged: the quota trees would keep it for ever.
func TestAUnitThatHasGoneIsNotJudged(t *testing.T) {
	l := &Leader{}
	u := &work.Unit{Path: "a/alloc/x/0"}
	u.Life.Take(work.StepRemoved, false)
	l.judgeFate(u) // would read the state of the nodes, and there is none
	if u.Wait.Fate.Message != "" || len(l.fates.marked) != 0 {
		t.Errorf("the unit is judged: %+v", u.Wait.Fate)
	}
}

// A unit can run if one of its forms can, although the verdict on an earlier form is not
// known for want of time.
func TestAFormThatCanRunCountsWhereAnEarlierIsUnknown(t *testing.T) {
	x := newScene(t)
	for _, name := range []string{"a", "b"} {
		x.running(name, 8, "")
	}
	u := x.accepted("u", 8, `"alternatives":[{"resources":{"requests":{"nvidia.com/gpu":"4"}}}],`)
	if !u.Waiting() || u.Attempt != nil || len(u.Forms) != 2 {
		t.Fatalf("the unit is %s with %d forms, want it to wait with two", u.Life.Phase(), len(u.Forms))
	}
	x.do(func() {
		x.mark(u, work.Fate{Message: "never", Reason: &resource.Reason{Code: "Never"}})
		x.fates.offered, x.fates.onNodes, x.fates.slow = x.state.Offered(), map[string]whatif.Fate{u.Forms[1].Shape: {}}, slowFates
		x.judgeFate(u)
		if u.Wait.Fate.Message != "" || u.Number != 0 {
			t.Errorf("with form %d the unit can never run: %q", u.Number, u.Wait.Fate.Message)
		}
	})
}
