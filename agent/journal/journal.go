package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// headroomMost bounds Options.Headroom.
const headroomMost = 1 << 30

// Journal is an open journal. One goroutine owns it and makes all calls,
// except that Sync may be called from one other at the same time. All calls
// may block on the disk, Append only where the page cache is short of memory.
//
// Invariant: the file holds header, records base+1..sequence and nothing else
// up to tail; tail <= allocated.
type Journal struct {
	dir      string
	fs       FS
	lock     *os.File
	headroom int64

	sequence  uint64 // of the last record
	tail      int64  // offset behind the last record
	allocated int64  // up to this offset the file has room
	full      bool   // the headroom could not be topped up
	buffer    []byte // of the write in progress

	swap   sync.RWMutex // held shared by Sync, exclusively while the two change
	header header
	file   File

	mu  sync.Mutex // guards err
	err error      // sticky
}

// ID returns the journal's identifier: 128 random bits in hexadecimal.
func (j *Journal) ID() string { return j.header.identifier() }

// Counter returns how many identifiers this folder has had, the present one
// included. It is for people: nothing may be decided by it.
func (j *Journal) Counter() uint64 { return j.header.counter }

// Size returns the bytes that header and records take; the owner compares it
// with its threshold for Rewrite.
func (j *Journal) Size() int64 { return j.tail }

// Full reports whether the headroom could not be topped up at the last
// attempt. Reserve makes an attempt.
func (j *Journal) Full() bool { return j.full }

// Path returns the file's path, for messages.
func (j *Journal) Path() string { return filepath.Join(j.dir, fileName) }

// Err returns the failure that poisoned the journal, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Reserve makes sure that the headroom is there. Where the disk has no room it
// returns an error that wraps ErrDiskFull and changes nothing.
func (j *Journal) Reserve() error { return j.reserve(0) }

// reserve makes room for n bytes and the headroom behind them.
func (j *Journal) reserve(n int64) error {
	if err := j.Err(); err != nil {
		return err
	}
	need := j.tail + n + j.headroom
	if need <= j.allocated {
		j.full = false
		return nil
	}
	// A little beyond, so that not every append has to allocate.
	ample := need + j.headroom/16
	err := j.file.Allocate(ample)
	if err == nil {
		j.allocated, j.full = ample, false
		return nil
	}
	if diskFull(err) {
		if err = j.file.Allocate(need); err == nil {
			j.allocated, j.full = need, false
			return nil
		}
	}
	if diskFull(err) {
		j.full = true
		return fmt.Errorf("journal %s: want %d bytes in reserve behind %d: %w (%w)", j.Path(), j.headroom, j.tail, ErrDiskFull, err)
	}
	return j.poison("allocate", err)
}

// Append writes payloads of 1..MaxPayload bytes as consecutive records in one
// write to the page cache: they survive the process, not the operating system
// until Sync. Errors:
//   - wraps ErrDiskFull: the headroom could not be kept; nothing was written;
//   - wraps ErrPoisoned: the write failed, now or before; the agent must stop;
//   - otherwise a payload's length is out of range; nothing was written.
func (j *Journal) Append(payloads ...[]byte) error {
	n, err := recordsSize(payloads)
	if err != nil {
		return err
	}
	if err := j.reserve(n); err != nil {
		return err
	}
	return j.write(payloads)
}

// AppendEssential is Append for records that end something (releases,
// tombstones): where the disk is full it uses up the headroom. It wraps
// ErrDiskFull only when that is used up too.
func (j *Journal) AppendEssential(payloads ...[]byte) error {
	n, err := recordsSize(payloads)
	if err != nil {
		return err
	}
	if err := j.reserve(n); err != nil && (!errors.Is(err, ErrDiskFull) || j.tail+n > j.allocated) {
		return err
	}
	return j.write(payloads)
}

func recordsSize(payloads [][]byte) (int64, error) {
	var n int64
	for i, p := range payloads {
		if len(p) == 0 || len(p) > MaxPayload {
			return 0, fmt.Errorf("journal: payload %d of %d has %d bytes, outside 1..%d", i+1, len(payloads), len(p), MaxPayload)
		}
		n += int64(recordHeader + len(p))
	}
	return n, nil
}

// write appends records for which there is room.
func (j *Journal) write(payloads [][]byte) error {
	if len(payloads) == 0 {
		return nil
	}
	j.buffer = j.buffer[:0]
	sequence, seed := j.sequence, j.header.seed()
	for _, p := range payloads {
		sequence++
		j.buffer = appendRecord(j.buffer, seed, sequence, p)
	}
	if j.tail+int64(len(j.buffer)) > MaxFile {
		return fmt.Errorf("journal %s: %d bytes, at most %d: it must be rewritten first", j.Path(), j.tail, MaxFile)
	}
	if n, err := j.file.WriteAt(j.buffer, j.tail); err != nil || n != len(j.buffer) {
		return j.poison(fmt.Sprintf("write %d bytes at %d (wrote %d)", len(j.buffer), j.tail, n), err)
	}
	j.sequence = sequence
	j.tail += int64(len(j.buffer))
	return nil
}

// Sync makes every record appended before the call durable. A failure is
// final: it poisons the journal and is never tried again, since the kernel
// may have dropped the pages that it could not write.
func (j *Journal) Sync() error {
	if err := j.Err(); err != nil {
		return err
	}
	j.swap.RLock()
	err := j.file.Sync()
	j.swap.RUnlock()
	if err != nil {
		return j.poison("sync", err)
	}
	return nil
}

// poison records the first failure, marks the file as doubtful as well as the
// disk allows, and returns the sticky error.
func (j *Journal) poison(what string, cause error) error {
	j.mu.Lock()
	if j.err == nil {
		j.err = fmt.Errorf("%w: %s %s: %w", ErrPoisoned, what, j.Path(), cause)
	}
	err := j.err
	j.mu.Unlock()
	_ = j.Condemn() // the owner repeats it before it exits; this is the first try
	return err
}

// Condemn notes on disk that this file may lack records, so that the next Open
// takes a new identifier although it may replay without a fault. A poisoned
// journal has tried it once; its owner calls Condemn until it returns nil, and
// only then gives up the lock: a read-only disk must come back first.
func (j *Journal) Condemn() error {
	j.swap.RLock()
	doubtful := j.header
	doubtful.flags |= flagDoubt
	_, err := j.file.WriteAt(doubtful.encode(), 0)
	if err == nil {
		err = j.file.Sync()
	}
	j.swap.RUnlock()
	if err == nil {
		return nil
	}
	f, second := j.fs.Open(doubtName, true)
	if second == nil {
		second = errors.Join(f.Close(), j.fs.SyncDir())
	}
	if second == nil {
		return nil
	}
	return fmt.Errorf("journal %s: cannot mark it doubtful: %w", j.Path(), errors.Join(err, second))
}

// Close syncs, unless the journal is poisoned, and gives up the lock. Later
// calls fail with ErrClosed.
func (j *Journal) Close() error {
	var syncErr error
	if j.Err() == nil {
		syncErr = j.Sync()
	}
	j.mu.Lock()
	if errors.Is(j.err, ErrClosed) {
		j.mu.Unlock()
		return nil
	}
	j.err = ErrClosed
	j.mu.Unlock()
	j.swap.Lock()
	defer j.swap.Unlock()
	return errors.Join(syncErr, j.file.Close(), j.lock.Close())
}
