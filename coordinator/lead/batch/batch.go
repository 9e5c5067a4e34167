// Package batch decides how a leader's writes reach the store: which of them
// share a Txn, how a shared Txn that failed is taken apart, and which answer
// each write gets. Writes that wait while Txns are under way share the next
// Txn: one round trip and one fsync serve all of them (PROTOCOL.md section 4).
//
// A Batcher is a value. It has no clock, no goroutine and no store: its methods
// take what happened, and append to a slice the effects that its owner carries
// out, in their order. The owner sends Txns, reads the leader's key, keeps
// time, and hands answers back. Package batch does not decide what to write, or
// what becomes of a write whose outcome is unknown.
//
// Pending is the other value here: it knows which writes and reads of a leader
// are under way, and hence whether a reader may be shown the leader's view.
package batch

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// InFlight is how many Txns of waiting writes are under way at once: while the
// store syncs one, the next already travels. With more, fewer writes would
// share a Txn.
const InFlight = 2

// ID names a Txn, or a pause after it. IDs ascend and are never used again.
type ID uint64

// Write is a set of operations that land together or not at all.
//
// Writes that write the same key share no Txn, and neither do two of which one compares a
// key that the other writes: both would hold before a Txn that breaks one of them. They may still be under way at one
// time, and land in any order: the compares of each have to allow for that.
type Write struct {
	// Token is the owner's name for the write; it comes back with the answer.
	Token    uint64
	Compares []record.Compare
	Ops      []record.Op
	// AnyEpoch leaves out the compare of the leader's key: only a fence may.
	AnyEpoch bool
	// Once: a refusal leads to no other write, so a full store's is answered without a pause.
	Once bool
}

// Result is the kind of the store's answer to a Txn.
type Result uint8

const (
	// Landed: the Txn is durable.
	Landed Result = iota
	// CompareFailed: a compare failed, and nothing was written.
	CompareFailed
	// Refused: a definite error; nothing was written or will be.
	Refused
	// Full: as Refused, because the store is out of space or read-only.
	Full
	// Lost: the Txn may have landed, or may land yet.
	Lost
)

// StoreAnswer is the store's answer to a Txn.
type StoreAnswer struct {
	Result Result
	// Revision of Landed is that of the Txn, of CompareFailed the store's.
	Revision resource.Revision
	// Err belongs to Refused, Full and Lost.
	Err error
}

// Key is the kind of the store's answer to a read of the leader's key.
type Key uint8

const (
	// Held: the key is the one that the leader created.
	Held Key = iota
	// Changed: the key is gone or is another leader's.
	Changed
	// Unread: the store did not answer.
	Unread
)

// Kind says what an effect asks for.
type Kind uint8

const (
	// Send the Txn to the store, and call Answered with the ID.
	Send Kind = iota + 1
	// ReadKey reads the leader's key once the time After is over, and calls
	// KeyRead with the ID.
	ReadKey
	// Pause for the time After, or until the term ends, and call PauseOver with
	// the ID.
	Pause
	// Answer the write Token with Outcome, Revision and Err.
	Answer
	// Depose: the term is over, because of Err.
	Depose
)

// Effect is one thing that the owner does. The fields beside Kind belong to the
// kinds that name them.
type Effect struct {
	Kind     Kind
	ID       ID
	Txn      record.Txn
	After    time.Duration
	Token    uint64
	Outcome  txn.Outcome
	Revision resource.Revision
	Err      error
}
