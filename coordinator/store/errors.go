package store

import "errors"

// Errors of reads and of the store itself, by errors.Is. The errors that the
// answer to a Txn or the last batch of a watch carries are package record's.
var (
	// ErrFutureRevision: a read asked for a revision that is not there yet.
	// After a restore from a backup this means that time went backwards.
	ErrFutureRevision = errors.New("revision lies in the future")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)
