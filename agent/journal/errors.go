package journal

import (
	"errors"
	"fmt"
)

// Errors of Open.
var (
	// ErrLocked: another process has the folder open. The message names its
	// pid.
	ErrLocked = errors.New("journal is in use by another process")
)

// Errors of an open journal.
var (
	// ErrPoisoned: a write or sync failed, so the content of the disk is
	// unknown. Every later call fails with it; the agent must stop, and comes
	// back under a new identifier.
	ErrPoisoned = errors.New("journal is poisoned by a failed write")
	// ErrDiskFull: the room that must stay in reserve cannot be had. Nothing
	// was written; the journal goes on.
	ErrDiskFull = errors.New("disk is full")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal is closed")
)

// CorruptError is a fault in the file that no crash explains: a bad header, or
// a bad record with whole ones behind it. Open changed nothing.
type CorruptError struct {
	File    string // path of the file
	Offset  int64  // byte offset of the fault
	Problem string // the fault found there
}

// Error names the file, the offset and the way on.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal %s is corrupt at offset %d: %s; restart with --new-journal to move it aside and recover from the store", e.File, e.Offset, e.Problem)
}
