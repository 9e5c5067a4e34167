package wire

import (
	"fmt"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// states pairs the states of a grant, and the answer No, with the wire's.
var states = [...]struct {
	state grant.State
	wire  musterv1.Reply_State
}{
	{grant.None, musterv1.Reply_NONE},
	{grant.No, musterv1.Reply_NO},
	{grant.Waiting, musterv1.Reply_WAITING},
	{grant.Reserved, musterv1.Reply_RESERVED},
	{grant.Held, musterv1.Reply_HELD},
	{grant.Evicting, musterv1.Reply_EVICTING},
	{grant.Stopping, musterv1.Reply_STOPPING},
	{grant.Tombstone, musterv1.Reply_FREED},
}

// recordStates pairs the states of a record with the wire's.
var recordStates = [...]struct {
	state grant.RecordState
	wire  musterv1.Record_State
}{
	{grant.RecordAbsent, musterv1.Record_ABSENT},
	{grant.RecordCommitted, musterv1.Record_COMMITTED},
	{grant.RecordEvicting, musterv1.Record_EVICTING},
	{grant.RecordReleasing, musterv1.Record_RELEASING},
	{grant.RecordReleased, musterv1.Record_RELEASED},
	{grant.RecordAborted, musterv1.Record_ABORTED},
}

// ToState returns the wire's word for a grant's state.
func ToState(s grant.State) musterv1.Reply_State {
	for _, p := range states {
		if p.state == s {
			return p.wire
		}
	}
	return musterv1.Reply_NONE
}

// FromState reads a grant's state.
func FromState(s musterv1.Reply_State) (grant.State, error) {
	for _, p := range states {
		if p.wire == s {
			return p.state, nil
		}
	}
	return grant.None, fmt.Errorf("state %d is unknown", s)
}

// ToRecordState returns the wire's word for a record's state.
func ToRecordState(s grant.RecordState) musterv1.Record_State {
	for _, p := range recordStates {
		if p.state == s {
			return p.wire
		}
	}
	return musterv1.Record_STATE_UNSPECIFIED
}

// FromRecordState reads a record's state.
func FromRecordState(s musterv1.Record_State) (grant.RecordState, error) {
	for _, p := range recordStates {
		if p.wire == s {
			return p.state, nil
		}
	}
	return grant.RecordAbsent, fmt.Errorf("state: %s is unknown", s)
}
