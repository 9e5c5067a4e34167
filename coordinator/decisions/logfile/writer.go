package logfile

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/resource"
)

// pause is how many records are passed over after the disk has refused, before
// it is tried again.
const pause = 4096

// writer is what the log's goroutine owns.
type writer struct {
	config Config
	want   func() // asks for a State

	file   *os.File // nil: none is open, because none began or the disk refused
	buffer *bufio.Writer
	size   int64
	asked  bool // for the State that turns the file over
	epoch  resource.Epoch
	number int    // of the file within the epoch
	last   uint64 // seq of the last record written, or begun to be
	passed int    // since the disk refused
}

// write puts one record into the file.
func (w *writer) write(r decisions.Record) {
	begins := r.State != nil && r.State.Begins
	if r.State != nil && (begins || w.file == nil || w.size > w.config.MaxBytes) {
		if err := w.begin(r.State.Epoch); err != nil {
			w.refused(err)
			return
		}
	}
	if w.file == nil {
		if w.passed++; w.passed%pause == 0 {
			w.want()
		}
		return
	}
	if lost := r.Seq - w.last - 1; !begins && w.last > 0 && lost > 0 {
		w.config.Logger.Warn("decisions_lost", "records", lost, "before", r.Seq)
		w.put(decisions.Encode(decisions.Record{Seq: r.Seq - 1, At: r.At, Gap: &decisions.Gap{Lost: lost}}))
	}
	w.put(decisions.Encode(r))
	w.last = r.Seq
	if w.size > w.config.MaxBytes && !w.asked {
		w.asked = true
		w.want()
	}
}

// begin opens the next file and lets go of the oldest.
func (w *writer) begin(epoch resource.Epoch) error {
	if err := w.close(); err != nil {
		w.config.Logger.Warn("decisions_not_written", "error", err)
	}
	files, err := Files(w.config.Dir)
	if err != nil {
		return err
	}
	if epoch != w.epoch {
		w.epoch, w.number = epoch, 0
	}
	prefix := series(files, epoch)
	for {
		w.number++
		name := filepath.Join(w.config.Dir, fmt.Sprintf("%s%016x-%06d%s", prefix, epoch, w.number, suffix))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		w.file, w.buffer, w.size, w.asked, w.passed = f, bufio.NewWriterSize(f, 64<<10), 0, false, 0
		break
	}
	w.put(decisions.Header())
	return w.prune()
}

// series is what the name of the next file begins with, so that names ascend
// also where epochs do not: in a store that was restored from a backup they
// begin anew. It is "" at first, then r000001- and so on.
func series(files []string, epoch resource.Epoch) string {
	if len(files) == 0 {
		return ""
	}
	newest := filepath.Base(files[len(files)-1])
	number, last := 0, uint64(0)
	if _, err := fmt.Sscanf(newest, "r%06d-%016x-", &number, &last); err != nil {
		if _, err := fmt.Sscanf(newest, "%016x-", &last); err != nil {
			return "" // of somebody else
		}
	}
	if uint64(epoch) < last {
		number++
	}
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("r%06d-", number)
}

// prune removes the oldest files beyond those that are kept.
func (w *writer) prune() error {
	files, err := Files(w.config.Dir)
	if err != nil {
		return err
	}
	for len(files) > w.config.Files {
		if err := os.Remove(files[0]); err != nil {
			return err
		}
		files = files[1:]
	}
	return nil
}

// put writes one line.
func (w *writer) put(line []byte) {
	if w.file == nil {
		return
	}
	n, err := w.buffer.Write(line)
	w.size += int64(n)
	if err != nil {
		w.refused(err)
	}
}

// flush hands to the kernel what is buffered.
func (w *writer) flush() {
	if w.file == nil {
		return
	}
	if err := w.buffer.Flush(); err != nil {
		w.refused(err)
	}
}

// refused gives the file up. The next State tries another.
func (w *writer) refused(err error) {
	w.config.Logger.Warn("decisions_not_written", "error", err)
	if w.file != nil {
		w.file.Close() // it has failed already
		w.file = nil
	}
	w.passed = 0
}

// close ends the open file.
func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	err := errors.Join(w.buffer.Flush(), w.file.Close())
	w.file = nil
	if err != nil {
		return fmt.Errorf("decisions: %w", err)
	}
	return nil
}
