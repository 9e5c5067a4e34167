package lead

import "testing"

// A unit that has gone is not judged: the quota trees would keep it for ever.
func TestAUnitThatHasGoneIsNotJudged(t *testing.T) {
	l := &Leader{}
	u := &unit{path: "a/alloc/x/0", gone: true}
	l.judgeFate(u) // would read the state of the nodes, and there is none
	if u.fate.message != "" || len(l.fates.marked) != 0 {
		t.Errorf("the unit is judged: %+v", u.fate)
	}
}
