package record

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/resource"
)

// Errors that an answer of the store may carry, by errors.Is.
var (
	// ErrUnknownOutcome: the Txn may have landed, or may yet. Read, then
	// decide; never act as if it had failed.
	ErrUnknownOutcome = errors.New("outcome unknown: the transaction may have landed or may land yet")
	// ErrLeaseGone: the lease has ended or never was.
	ErrLeaseGone = errors.New("lease does not exist or has ended")
	// ErrDuplicateKey: a Txn writes one key twice.
	ErrDuplicateKey = errors.New("transaction writes one key twice")
	// ErrNoSpace: the store is full and refuses writes until it is compacted,
	// defragmented and its alarm disarmed (etcdctl compact, defrag, alarm disarm).
	ErrNoSpace = errors.New("the store (etcd) is out of space and takes deletions alone: delete what has ended, compact, defragment and disarm the alarm (docs/store.md)")
	// ErrReadOnly: the user of the store may only read.
	ErrReadOnly = errors.New("the store (etcd) lets the coordinator read alone: give its user the right to write (etcdctl role grant-permission)")
	// ErrWentBack: a *WentBackError.
	ErrWentBack = errors.New("store was restored from a backup")
)

// WentBackError says that the store's past is not the one that was seen
// before: it was restored from a backup, and writes that had been acknowledged
// are gone. It is ErrWentBack by errors.Is. Every call and every watch ends
// with the same pointer until the pointer is given to the
// store's Acknowledge.
type WentBackError struct {
	// Had is the highest revision seen before, Has the one seen now. Has may
	// be the greater one by the time the loss is noticed.
	Had, Has resource.Revision
}

// Error names both revisions.
func (e *WentBackError) Error() string {
	return fmt.Sprintf("store was restored from a backup: it is at revision %d and has lost what was written up to %d; drop what was read from it and read anew",
		e.Has, e.Had)
}

// Is makes it an ErrWentBack.
func (e *WentBackError) Is(target error) bool { return target == ErrWentBack }

// CompactedError says that a revision's history is gone.
type CompactedError struct {
	Asked resource.Revision
	// Floor is the oldest revision that can still be read and watched.
	Floor resource.Revision
}

// Error names both revisions.
func (e *CompactedError) Error() string {
	return fmt.Sprintf("revision %d has been compacted: the oldest one kept is %d; read anew and watch from there", e.Asked, e.Floor)
}

// TooManyOpsError refuses a Txn that the store can never take.
type TooManyOpsError struct{ Ops, Limit int }

// Error names both numbers.
func (e *TooManyOpsError) Error() string {
	return fmt.Sprintf("transaction has %d operations, the store takes %d (etcd's --max-txn-ops)", e.Ops, e.Limit)
}

// TooLargeError refuses a Txn whose keys and values are more bytes than the
// store takes.
type TooLargeError struct{ Bytes int }

// Error names the size.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("transaction of %d bytes is larger than the store takes (etcd's --max-request-bytes)", e.Bytes)
}
