package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	fileName  = "journal"
	newName   = "journal.new"
	doubtName = "doubt"
)

// DefaultHeadroom is the size of the room that stays preallocated behind the
// records so that releases still work on a full disk: 16 MiB.
const DefaultHeadroom = 16 << 20

// Options of Open; the zero value is the default.
type Options struct {
	// NewJournal moves any present file aside and starts an empty one.
	NewJournal bool
	// Headroom is preallocated behind the records, in bytes, 0..1 GiB; 0 is
	// DefaultHeadroom.
	Headroom int64
	// FS replaces the folder's files (not its lock); nil is the operating
	// system's.
	FS FS
}

// Recovery is the result of Open's recovery.
type Recovery struct {
	// Payloads are the records in order. They share one buffer.
	Payloads [][]byte
	// JournalID is the identifier in force, and PreviousID that of the file
	// found; they differ where anything was cut, missing, in doubt, or moved aside.
	// PreviousID is "" where no file, or none that could be read, was found.
	JournalID  string
	PreviousID string
	// Cut counts the bytes of a torn tail that were dropped, from CutOffset.
	Cut, CutOffset int64
	// Short counts the bytes that the file lacks of those it was made with:
	// somebody truncated it, perhaps between two records.
	Short int64
	// Doubtful: the process before this one saw a write or sync fail.
	Doubtful bool
	// Wiped: there was nothing to remember, since no file was found or
	// NewJournal moved it aside. The agent quarantines and adopts the store's
	// records.
	Wiped bool
	// MovedTo is the path of the file that NewJournal moved aside, or "".
	MovedTo string
}

// Open locks the folder, making it if it is absent, and recovers its journal.
// The records it returns are durable. Errors: wraps ErrLocked; *CorruptError;
// or the disk's error.
func Open(dir string, opts Options) (*Journal, *Recovery, error) {
	if opts.Headroom < 0 || opts.Headroom > headroomMost {
		return nil, nil, fmt.Errorf("journal: headroom of %d bytes is outside 0..%d", opts.Headroom, headroomMost)
	}
	if opts.Headroom == 0 {
		opts.Headroom = DefaultHeadroom
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("journal: make folder: %w", err)
	}
	lock, err := takeLock(dir)
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{dir: dir, fs: opts.FS, lock: lock, headroom: opts.Headroom}
	if j.fs == nil {
		j.fs = dirFS(dir)
	}
	r, err := j.recover(opts.NewJournal)
	if err != nil {
		if j.file != nil {
			err = errors.Join(err, j.file.Close())
		}
		return nil, nil, errors.Join(err, lock.Close())
	}
	r.JournalID = j.ID()
	return j, r, nil
}

// recover opens or makes the file.
func (j *Journal) recover(moveAside bool) (*Recovery, error) {
	r := &Recovery{}
	found, err := exists(j.fs, fileName)
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", j.Path(), err)
	}
	switch {
	case !found:
		r.Wiped = true
		return r, j.renew(nil)
	case moveAside:
		r.Wiped = true
		r.PreviousID, j.header.counter = j.previous()
		if r.MovedTo, err = j.moveAside(); err != nil {
			return nil, err
		}
		return r, j.renew(nil)
	}
	return r, j.replay(r)
}

// replay reads the file and goes on with it, or under a new identifier.
func (j *Journal) replay(r *Recovery) error {
	file, err := j.fs.Open(fileName, false)
	if err != nil {
		return fmt.Errorf("journal: open %s: %w", j.Path(), err)
	}
	j.file = file
	data, err := readAll(file)
	if err != nil {
		return fmt.Errorf("journal: read %s: %w", j.Path(), err)
	}
	img, err := parse(data)
	if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) {
		corrupt.File = j.Path()
		return corrupt
	}
	marked, err := exists(j.fs, doubtName)
	if err != nil {
		return fmt.Errorf("journal: open %s: %w", filepath.Join(j.dir, doubtName), err)
	}
	j.header = img.header
	j.sequence = img.header.base + uint64(len(img.payloads))
	j.tail, j.allocated = int64(img.end), int64(len(data))
	r.Payloads, r.PreviousID = img.payloads, j.ID()
	r.Doubtful = marked || img.header.flags&flagDoubt != 0
	if img.torn {
		r.Cut, r.CutOffset = int64(len(data)-img.end), int64(img.end)
	}
	r.Short = img.short
	if img.torn || img.short > 0 || r.Doubtful { // model: mutant LOSS_KEEPS_INCARNATION
		if err := j.renew(img.payloads); err != nil {
			return err
		}
		if marked {
			// Only once the new identifier is in force.
			return j.forgetDoubt()
		}
		return nil
	}
	if err := file.Sync(); err != nil {
		return j.poison("sync", err)
	}
	if err := j.reserve(0); err != nil && !errors.Is(err, ErrDiskFull) {
		return err
	}
	return nil
}

// previous reads the identifier and counter of a file that is given up, as far
// as it can be read.
func (j *Journal) previous() (id string, counter uint64) {
	file, err := j.fs.Open(fileName, false)
	if err != nil {
		return "", 0
	}
	defer file.Close()
	b := make([]byte, headerSize)
	if _, err := file.ReadAt(b, 0); err != nil {
		return "", 0
	}
	h, err := decodeHeader(b)
	if err != nil {
		return "", 0
	}
	return h.identifier(), h.counter
}

// moveAside renames the file to the first free journal.corrupt-N.
func (j *Journal) moveAside() (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.corrupt-%d", fileName, n)
		taken, err := exists(j.fs, name)
		if err != nil {
			return "", fmt.Errorf("journal: open %s: %w", filepath.Join(j.dir, name), err)
		}
		if taken {
			continue
		}
		if err := errors.Join(j.fs.Rename(fileName, name), j.fs.SyncDir()); err != nil {
			return "", fmt.Errorf("journal: move %s aside: %w", j.Path(), err)
		}
		return filepath.Join(j.dir, name), nil
	}
}

// renew puts a file with a fresh identifier and the given records in force.
func (j *Journal) renew(payloads [][]byte) error {
	fresh := header{version: version, counter: j.header.counter + 1, base: j.sequence}
	rand.Read(fresh.id[:]) // never fails: it ends the process instead
	err := j.replace(fresh, payloads, j.headroom)
	if errors.Is(err, ErrDiskFull) {
		// Start all the same: the grants must be re-adopted, and new
		// reservations are refused until there is room.
		err = j.replace(fresh, payloads, 0)
	}
	return err
}

// forgetDoubt moves the doubt file out of the way.
func (j *Journal) forgetDoubt() error {
	if err := errors.Join(j.fs.Rename(doubtName, newName), j.fs.SyncDir()); err != nil {
		return fmt.Errorf("journal: remove %s: %w", filepath.Join(j.dir, doubtName), err)
	}
	return nil
}
