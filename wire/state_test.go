package wire_test

import (
	"testing"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire"
)

// Every state of either side has exactly one word of the other, so that a state
// that joins one enumeration alone is noticed here.
func TestStatesOfAGrantAreTheWiresStates(t *testing.T) {
	for n := range musterv1.Reply_State_name {
		from := musterv1.Reply_State(n)
		state, err := wire.FromState(from)
		if from == musterv1.Reply_STATE_UNSPECIFIED {
			if err == nil {
				t.Errorf("%s is read as %s", from, state)
			}
			continue
		}
		if err != nil || wire.ToState(state) != from {
			t.Errorf("%s is read as %s (%v) and written as %s", from, state, err, wire.ToState(state))
		}
	}
	for s := grant.None; s <= grant.No; s++ {
		if back, err := wire.FromState(wire.ToState(s)); err != nil || back != s {
			t.Errorf("%s is written as %s and read as %s, %v", s, wire.ToState(s), back, err)
		}
	}
	if _, err := wire.FromState(99); err == nil {
		t.Error("state 99 is read")
	}
}

func TestStatesOfARecordAreTheWiresStates(t *testing.T) {
	for n, name := range musterv1.Record_State_name {
		from := musterv1.Record_State(n)
		state, err := wire.FromRecordState(from)
		if from == musterv1.Record_STATE_UNSPECIFIED {
			if err == nil {
				t.Errorf("%s is read as %s", from, state)
			}
			continue
		}
		if err != nil || wire.ToRecordState(state) != from || state != grant.RecordAbsent && state.String() != name {
			t.Errorf("%s is read as %s (%v) and written as %s", from, state, err, wire.ToRecordState(state))
		}
	}
	for s := grant.RecordAbsent; s <= grant.RecordAborted; s++ {
		if back, err := wire.FromRecordState(wire.ToRecordState(s)); err != nil || back != s {
			t.Errorf("%s is written as %s and read as %s, %v", s, wire.ToRecordState(s), back, err)
		}
	}
}
