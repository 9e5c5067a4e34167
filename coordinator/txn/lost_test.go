package txn_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

func TestANodeThatIsBackFreesForItself(t *testing.T) {
	votes := map[resource.NodeID]txn.Vote{"a": {Revision: 1}, "b": {Revision: 2}}
	m, _ := txn.Recover("t", txn.Found{State: grant.RecordReleasing, Revision: 5, GraceSeconds: 7}, votes)
	if e := m.Step(txn.Freed{Node: "a"}); e != nil || !m.FreedAt("a") { // presumed
		t.Fatalf("%v, freed at a: %t", e, m.FreedAt("a"))
	}
	if diff := cmp.Diff([]txn.Effect{txn.WriteReleased{}}, m.Step(txn.Freed{Node: "b"})); diff != "" {
		t.Fatal(diff)
	}
	m.Step(txn.Returned{Node: "a"}) // while the Txn is under way
	m.Step(txn.ReleasedAnswered{Outcome: txn.Conflict})
	asked := m.Step(txn.RecordRead{State: grant.RecordReleasing, Revision: 5})
	if diff := cmp.Diff([]txn.Effect{txn.SendRelease{Node: "a", GraceSeconds: 7}}, asked); diff != "" {
		t.Errorf("asked after its return (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]txn.Effect{txn.WriteReleased{}}, m.Step(txn.Freed{Node: "a"})); diff != "" {
		t.Error(diff)
	}
	m.Step(txn.ReleasedAnswered{Outcome: txn.Landed, Revision: 9})
	m.Step(txn.Returned{Node: "a"}) // too late
	if m.State() != txn.Released || !m.FreedAt("a") || m.FreedAt("z") {
		t.Errorf("%v", m)
	}
}
