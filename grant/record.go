package grant

import (
	"fmt"
	"slices"
)

// RecordState is the state of a transaction's record in the store: the only
// place where a transaction is decided.
type RecordState uint8

// The states of a record. An absent record is undecided, not aborted.
const (
	RecordAbsent RecordState = iota
	RecordCommitted
	RecordEvicting
	RecordReleasing
	RecordReleased
	RecordAborted
)

var recordStateNames = [...]string{"absent", "COMMITTED", "EVICTING", "RELEASING", "RELEASED", "ABORTED"}

// RecordEdge is one step of a record.
type RecordEdge struct{ From, To RecordState }

// recordEdges are all steps of a record. A record leaves the store, terminal, by
// being deleted.
var recordEdges = [...]RecordEdge{
	{RecordAbsent, RecordCommitted},
	{RecordAbsent, RecordAborted},
	{RecordCommitted, RecordCommitted}, // a member is lost (ADR 110)
	{RecordCommitted, RecordEvicting},
	{RecordCommitted, RecordReleasing},
	{RecordEvicting, RecordReleasing},
	{RecordEvicting, RecordReleased}, // in the Txn of PROTOCOL.md 6.5 only
	{RecordReleasing, RecordReleased},
}

// RecordEdges returns all steps of a record, by the state that is left.
func RecordEdges() []RecordEdge { return slices.Clone(recordEdges[:]) }

// MayBecome reports whether a record may go from s to the state to.
func (s RecordState) MayBecome(to RecordState) bool {
	return slices.Contains(recordEdges[:], RecordEdge{s, to})
}

// Charged reports whether a record in this state counts against quota.
func (s RecordState) Charged() bool {
	return s == RecordCommitted || s == RecordEvicting || s == RecordReleasing
}

// Terminal reports whether the record exists and no edge leaves the state.
func (s RecordState) Terminal() bool { return s == RecordReleased || s == RecordAborted }

// String returns the state's name in the words of PROTOCOL.md.
func (s RecordState) String() string {
	if int(s) < len(recordStateNames) {
		return recordStateNames[s]
	}
	return fmt.Sprintf("RecordState(%d)", uint8(s))
}

// MarshalText returns String.
func (s RecordState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of a record that exists.
func (s *RecordState) UnmarshalText(text []byte) error {
	if i := slices.Index(recordStateNames[:], string(text)); i > int(RecordAbsent) {
		*s = RecordState(i)
		return nil
	}
	return fmt.Errorf("state %q is not COMMITTED, EVICTING, RELEASING, RELEASED or ABORTED", text)
}
