package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// DefaultMost is the greatest size of a spool, in bytes on the disk.
const DefaultMost = 256 << 20

// segmentBytes is the size at which the next segment begins.
const segmentBytes = 8 << 20

// FullError refuses a batch for which the spool has no room.
type FullError struct{ Has, Wants, Most int64 }

// Error names the sizes.
func (e *FullError) Error() string {
	return fmt.Sprintf("the spool of the history has %d bytes and the batch %d more: want at most %d", e.Has, e.Wants, e.Most)
}

// Spool is batches in the order of their revisions. One goroutine at a time uses it.
//
// Invariant: each frame follows the one before: After is the other's Upto.
type Spool struct {
	dir    string
	most   int64
	frames []frame
	bytes  int64 // of all segments
	next   uint64
	tail   *os.File // the segment that is appended to; nil for none
	size   int64    // of tail
	broken error
}

// frame is the place of a batch.
type frame struct {
	segment     uint64
	offset      int64
	length      int
	after, upto resource.Revision
}

// Open reads a folder, which is made where it is absent. most is the greatest size in
// bytes, 0 for DefaultMost. Frames behind a damaged one are dropped: lost is the number
// of bytes. Frames of another version are kept, and refused by a *VersionError.
func Open(dir string, most int64) (s *Spool, lost int64, err error) {
	if most == 0 {
		most = DefaultMost
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, 0, fmt.Errorf("spool of the history: %w", err)
	}
	s = &Spool{dir: dir, most: most}
	names, err := s.segments()
	if err != nil {
		return nil, 0, err
	}
	for i, id := range names {
		s.next = id + 1
		bad, err := s.read(id)
		if err != nil {
			return nil, 0, err
		}
		if bad > 0 {
			lost += bad
			rest, err := s.dropSegments(names[i+1:])
			if err != nil {
				return nil, 0, err
			}
			lost += rest
			break
		}
	}
	return s, lost, nil
}

// segments are the numbers of the segments in the folder, ascending.
func (s *Spool) segments() ([]uint64, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("spool of the history: %w", err)
	}
	var ids []uint64
	for _, e := range entries {
		text, is := strings.CutSuffix(e.Name(), ".seg")
		if id, err := strconv.ParseUint(text, 16, 63); is && err == nil && len(text) == 16 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func (s *Spool) path(segment uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016x.seg", segment))
}

// read takes the frames of a segment, and cuts off the rest from the first frame on that
// is damaged or does not follow. It returns the number of bytes cut off.
func (s *Spool) read(segment uint64) (bad int64, err error) {
	data, err := os.ReadFile(s.path(segment))
	if err != nil {
		return 0, fmt.Errorf("spool of the history: %w", err)
	}
	at := 0
	for at < len(data) {
		b, length, err := decode(data[at:])
		var other *VersionError
		if errors.As(err, &other) { // it is whole
			return 0, fmt.Errorf("spool of the history: %s at byte %d: %w", s.path(segment), at, err)
		}
		if err != nil || len(s.frames) > 0 && b.After != s.frames[len(s.frames)-1].upto {
			break
		}
		s.frames = append(s.frames, frame{segment, int64(at), length, b.After, b.Upto})
		at += length
	}
	s.bytes += int64(at)
	if at == len(data) {
		return 0, nil
	}
	if err := os.Truncate(s.path(segment), int64(at)); err != nil {
		return 0, fmt.Errorf("spool of the history: %w", err)
	}
	return int64(len(data) - at), nil
}

// dropSegments removes segments, and returns their bytes.
func (s *Spool) dropSegments(segments []uint64) (bytes int64, err error) {
	for _, id := range segments {
		if info, err := os.Stat(s.path(id)); err == nil {
			bytes += info.Size()
		}
		if err := os.Remove(s.path(id)); err != nil {
			return bytes, fmt.Errorf("spool of the history: %w", err)
		}
	}
	return bytes, nil
}

// Len is the number of batches.
func (s *Spool) Len() int { return len(s.frames) }

// Bytes is the size on the disk.
func (s *Spool) Bytes() int64 { return s.bytes }

// Reach is the revision before the first batch and that of the last one; both are 0 for
// an empty spool.
func (s *Spool) Reach() (after, upto resource.Revision) {
	if len(s.frames) == 0 {
		return 0, 0
	}
	return s.frames[0].after, s.frames[len(s.frames)-1].upto
}

// Append adds a batch, which follows the last one, and has it on the disk. Errors are
// *FullError, a batch that does not follow, or the disk's: after that one the spool
// takes nothing more until it is opened again, for the kernel may have lost the data.
func (s *Spool) Append(b history.Batch) error {
	if s.broken != nil {
		return fmt.Errorf("spool of the history: an earlier write failed: %w", s.broken)
	}
	if _, upto := s.Reach(); s.Len() > 0 && b.After != upto {
		return fmt.Errorf("spool of the history: a batch after revision %d does not follow revision %d", b.After, upto)
	}
	data, err := encode(b)
	if err != nil {
		return err
	}
	if s.bytes+int64(len(data)) > s.most {
		return &FullError{s.bytes, int64(len(data)), s.most}
	}
	if err := s.write(data); err != nil {
		s.broken = err
		return fmt.Errorf("spool of the history: %w", err)
	}
	s.frames = append(s.frames, frame{s.next - 1, s.size, len(data), b.After, b.Upto})
	s.size += int64(len(data))
	s.bytes += int64(len(data))
	return nil
}

func (s *Spool) write(data []byte) error {
	if s.tail == nil || s.size >= segmentBytes {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if _, err := s.tail.WriteAt(data, s.size); err != nil {
		return err
	}
	return s.tail.Sync()
}

// begin begins a segment.
func (s *Spool) begin() error {
	if err := s.closeTail(); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path(s.next), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	s.tail, s.size, s.next = f, 0, s.next+1
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (s *Spool) closeTail() error {
	if s.tail == nil {
		return nil
	}
	f := s.tail
	s.tail = nil
	return f.Close()
}

// First reads the first batch; found is false for an empty spool.
func (s *Spool) First() (b history.Batch, found bool, err error) {
	if len(s.frames) == 0 {
		return b, false, nil
	}
	return s.load(s.frames[0])
}

// Last reads the last batch; found is false for an empty spool.
func (s *Spool) Last() (b history.Batch, found bool, err error) {
	if len(s.frames) == 0 {
		return b, false, nil
	}
	return s.load(s.frames[len(s.frames)-1])
}

func (s *Spool) load(at frame) (b history.Batch, found bool, err error) {
	f, err := os.Open(s.path(at.segment))
	if err != nil {
		return b, false, fmt.Errorf("spool of the history: %w", err)
	}
	defer f.Close()
	data := make([]byte, at.length)
	if _, err := io.ReadFull(io.NewSectionReader(f, at.offset, int64(at.length)), data); err != nil {
		return b, false, fmt.Errorf("spool of the history: %w", err)
	}
	b, _, err = decode(data)
	return b, err == nil, err
}

// DropUpto drops the batches that reach no further than a revision. Segments without
// batches are removed.
func (s *Spool) DropUpto(upto resource.Revision) error {
	n := 0
	for n < len(s.frames) && s.frames[n].upto <= upto {
		n++
	}
	return s.drop(n)
}

// Clear drops all batches.
func (s *Spool) Clear() error { return s.drop(len(s.frames)) }

func (s *Spool) drop(n int) error {
	if n == 0 {
		return nil
	}
	gone := s.frames[:n]
	s.frames = slices.Clone(s.frames[n:])
	keep := s.next // the first segment with a batch
	if len(s.frames) > 0 {
		keep = s.frames[0].segment
	}
	var errs []error
	if keep == s.next {
		errs = append(errs, s.closeTail())
	}
	for i, f := range gone {
		if f.segment >= keep || i > 0 && gone[i-1].segment == f.segment {
			continue
		}
		if info, err := os.Stat(s.path(f.segment)); err == nil {
			s.bytes -= info.Size()
		}
		errs = append(errs, os.Remove(s.path(f.segment)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("spool of the history: %w", err)
	}
	return nil
}

// Close frees the spool.
func (s *Spool) Close() error { return s.closeTail() }
