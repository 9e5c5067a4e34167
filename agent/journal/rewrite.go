package journal

import (
	"errors"
	"fmt"
)

// Rewrite replaces all records by the given payloads, under the same
// identifier: a compaction. They are durable when it returns. Where the disk
// has no room for the new file an error that wraps ErrDiskFull leaves the
// journal as it was; any other failure poisons it.
func (j *Journal) Rewrite(payloads [][]byte) error {
	if err := j.Err(); err != nil {
		return err
	}
	if _, err := recordsSize(payloads); err != nil {
		return err
	}
	next := j.header
	next.base = j.sequence
	if err := j.replace(next, payloads, j.headroom); err != nil {
		if errors.Is(err, ErrDiskFull) {
			return err
		}
		return j.poison("rewrite", err)
	}
	return nil
}

// replace writes a new file beside the present one, makes it durable and
// renames it over, with the given room behind the records. After an error
// before the rename the present file is still in force.
func (j *Journal) replace(h header, payloads [][]byte, room int64) error {
	n, err := recordsSize(payloads)
	if err != nil {
		return err
	}
	if n > MaxFile {
		return fmt.Errorf("journal %s: a snapshot of %d bytes, at most %d", j.Path(), n, MaxFile)
	}
	file, err := j.fs.Open(newName, true)
	if err != nil {
		return j.replaceFailed(nil, err)
	}
	allocated := headerSize + n + room
	h.version, h.size = version, uint64(allocated)
	if err := file.Allocate(allocated); err != nil {
		return j.replaceFailed(file, err)
	}
	b := make([]byte, 0, headerSize+n)
	b = append(b, h.encode()...)
	for i, p := range payloads {
		b = appendRecord(b, h.seed(), h.base+uint64(i)+1, p)
	}
	if _, err := file.WriteAt(b, 0); err != nil {
		return j.replaceFailed(file, err)
	}
	if err := file.Sync(); err != nil {
		return j.replaceFailed(file, err)
	}
	if err := errors.Join(j.fs.Rename(newName, fileName), j.fs.SyncDir()); err != nil {
		// Which of the two files a restart finds is unknown now.
		return errors.Join(fmt.Errorf("journal: put %s in force: %w", j.Path(), err), file.Close())
	}
	j.swap.Lock()
	old := j.file
	j.file, j.header = file, h
	j.swap.Unlock()
	j.sequence = h.base + uint64(len(payloads))
	j.tail, j.allocated, j.full = int64(len(b)), allocated, allocated < int64(len(b))+j.headroom
	if old != nil {
		// Nothing reads it any more; a write that fails here is superseded.
		_ = old.Close()
	}
	return nil
}

// replaceFailed tidies up after a failure before the rename, and distinguishes
// a full disk from other errors. The half-made file is emptied so that it does
// not hold the room that the disk lacks.
func (j *Journal) replaceFailed(file File, cause error) error {
	if file != nil {
		cause = errors.Join(cause, file.Close())
		if emptied, err := j.fs.Open(newName, true); err == nil {
			cause = errors.Join(cause, emptied.Close())
		}
	}
	if diskFull(cause) {
		return fmt.Errorf("journal %s: make a new file: %w (%w)", j.Path(), ErrDiskFull, cause)
	}
	return fmt.Errorf("journal %s: make a new file: %w", j.Path(), cause)
}
