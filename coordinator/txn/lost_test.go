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

// A record that has lost a member goes on with the others, and ends with them alone.
func TestARecordGoesOnWithoutTheMembersOfADeadNode(t *testing.T) {
	votes := map[resource.NodeID]txn.Vote{"a": {Revision: 1}, "b": {Revision: 2}, "c": {Revision: 3}}
	m, _ := txn.Recover("t", txn.Found{State: grant.RecordCommitted, Revision: 5}, votes)
	steps := []struct {
		in   txn.Input
		want []txn.Effect
	}{
		{txn.NodeLost{Node: "z"}, nil},
		{txn.NodeLost{Node: "b"}, []txn.Effect{txn.WriteLoss{Node: "b"}}},
		{txn.NodeLost{Node: "c"}, nil}, // one after the other
		{txn.EvictAsked{GraceSeconds: 3}, nil},
		{txn.LossAnswered{Node: "c", Outcome: txn.Landed, Revision: 6}, nil}, // of nothing that was sent
		{txn.LossAnswered{Node: "b", Outcome: txn.Unknown}, []txn.Effect{txn.ReadRecord{}}},
		{txn.RecordRead{State: grant.RecordCommitted, Revision: 7, Lost: []resource.NodeID{"b"}}, []txn.Effect{
			txn.AckLoss{Node: "b", Revision: 7}, txn.WriteEvicting{GraceSeconds: 3},
		}},
		{txn.EvictingAnswered{Outcome: txn.Landed, Revision: 8}, []txn.Effect{
			txn.AckEvicting{Revision: 8, GraceSeconds: 3}, txn.SendEvict{Node: "a", GraceSeconds: 3}, txn.SendEvict{Node: "c", GraceSeconds: 3},
		}},
		{txn.Freed{Node: "a"}, nil},
		{txn.Freed{Node: "c"}, []txn.Effect{txn.WriteReleasing{GraceSeconds: 3, Evicted: true}}},
	}
	for i, s := range steps {
		if diff := cmp.Diff(s.want, m.Step(s.in)); diff != "" {
			t.Fatalf("step %d, %T (-want +got):\n%s", i, s.in, diff)
		}
	}
}

// A loss whose Txn has no answer is sent again until it has one: it could land later. One
// that a compare refuses is given up, since the node is back.
func TestALossIsSentUntilItIsDecided(t *testing.T) {
	votes := map[resource.NodeID]txn.Vote{"a": {Revision: 1}, "b": {Revision: 2}}
	m, _ := txn.Recover("t", txn.Found{State: grant.RecordCommitted, Revision: 5}, votes)
	m.Step(txn.NodeLost{Node: "b"})
	for range 3 {
		m.Step(txn.LossAnswered{Node: "b", Outcome: txn.Unknown})
		if diff := cmp.Diff([]txn.Effect{txn.WriteLoss{Node: "b"}}, m.Step(txn.RecordRead{State: grant.RecordCommitted, Revision: 5})); diff != "" {
			t.Fatal(diff)
		}
	}
	m.Step(txn.LossAnswered{Node: "b", Outcome: txn.Conflict})
	e := m.Step(txn.RecordRead{State: grant.RecordCommitted, Revision: 5})
	if len(e) != 2 || m.State() != txn.Committed || !m.Has("b") { // the nodes hear of the record again
		t.Errorf("%v, %v", e, m)
	}
	m.Step(txn.NodeLost{Node: "b"})
	m.Step(txn.LossAnswered{Node: "b", Outcome: txn.Landed, Revision: 6})
	if e := m.Step(txn.NodeLost{Node: "a"}); e != nil || m.Has("b") || m.Revision() != 6 {
		t.Errorf("the last node is lost: %v, %v", e, m)
	}
}
