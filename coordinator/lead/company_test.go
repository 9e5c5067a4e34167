package lead

import (
	"testing"

	"github.com/musterd/muster/coordinator/decisions"
)

// checked is the account of decisions, read by its checker.
type checked struct{ *decisions.Checker }

// Append implements DecisionLog.
func (c checked) Append(r decisions.Record) (again bool) {
	c.Record(r)
	return false
}

// TestAGroupWakesOthersOnceAllItsMembersHaveBegun: the members of a group are charged
// by one decision. No unit is tried between two members, and the account does not say
// that a unit ahead should have been. The unit ahead is tried again afterwards.
func TestAGroupWakesOthersOnceAllItsMembersHaveBegun(t *testing.T) {
	rules, log := sceneRules(), checked{decisions.NewChecker()}
	rules.Decisions = log
	x := newSceneOf(t, rules)
	x.keepAccount()
	x.shares()
	x.running("own", 4, `"quota":{"unPreemptable":true,"groups":{"Org":"two"}},`)
	w := x.accepted("w", 8, `"priority":5,"quota":{"groups":{"Org":"two"}},`)
	const member = `"scheduling":{"gangScheduling":{"groupId":"g","minMembers":2}},"quota":{"groups":{"Org":"one"}},`
	first := x.accepted("first", 1, member)
	tries := w.Wait.Attempts
	second := x.accepted("second", 1, member)
	if first.Attempt == nil || second.Attempt == nil {
		t.Fatalf("the group does not start: %+v, %+v", x.evidenceOf(first), x.evidenceOf(second))
	}
	if w.Attempt != nil || w.Wait.Attempts == tries {
		t.Errorf("the unit ahead waits: %t; it was tried %d times, then %d times", w.Attempt == nil, tries, w.Wait.Attempts)
	}
	report := log.Report()
	if report.Verified != 3 {
		t.Errorf("the account: %d placements verified, want 3", report.Verified)
	}
	for _, v := range report.Violations {
		t.Errorf("the account: %s", v)
	}
}
