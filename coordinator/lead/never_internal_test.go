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
	u := &unit{path: "a/alloc/x/0"}
	u.life.Take(work.StepRemoved, false)
	l.judgeFate(u) // would read the state of the nodes, and there is none
	if u.fate.message != "" || len(l.fates.marked) != 0 {
		t.Errorf("the unit is judged: %+v", u.fate)
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
	if !u.waiting() || u.attempt != nil || len(u.forms) != 2 {
		t.Fatalf("the unit is %s with %d forms, want it to wait with two", u.life.Phase(), len(u.forms))
	}
	x.do(func() {
		x.mark(u, fate{message: "never", reason: &resource.Reason{Code: "Never"}})
		x.fates.offered, x.fates.onNodes, x.fates.slow = x.state.Offered(), map[string]whatif.Fate{u.forms[1].Shape: {}}, slowFates
		x.judgeFate(u)
		if u.fate.message != "" || u.number != 0 {
			t.Errorf("with form %d the unit can never run: %q", u.number, u.fate.message)
		}
	})
}
