// Package logfile keeps the leader's account of its decisions in files: JSON
// Lines, one series per term, turned over by size. It decides when a file
// begins and which are kept, not what is recorded.
//
// It is evidence, not state: nothing waits for it. Append never blocks; what it
// has no room for, or the disk refuses, is lost, and a gap in the file says how
// much. Files are not fsynced. Earlier files are never appended to: what a
// process that was killed has written may end anywhere.
package logfile

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/coordinator/decisions"
)

// Config says where and how much. The zero value of a number is its default.
type Config struct {
	Dir string // made with mode 0700 if need be
	// MaxBytes is the size at which a file is turned over; default 64 MiB. Each
	// begins with the whole order, some 100 bytes for each unit that waits.
	MaxBytes int64
	Files    int // kept, with the one that is written; default 16
	Logger   *slog.Logger
}

const (
	defaultMaxBytes = 64 << 20
	defaultFiles    = 16
)

// room is how many records may wait for the disk: some seconds of a busy
// leader. Beyond it they are lost rather than that the leader waits.
const room = 8192

// Log is an open series of files. One goroutine at a time appends.
type Log struct {
	records chan decisions.Record
	quit    chan struct{}
	wg      sync.WaitGroup
	turn    atomic.Bool // the writer wants a State, once

	behind bool // the appender's: records are lost, up to the next State
	writer writer
}

// Open makes the directory and starts the writer.
func Open(c Config) (*Log, error) {
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Files == 0 {
		c.Files = defaultFiles
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MaxBytes < 0 || c.Files < 1 {
		return nil, fmt.Errorf("decisions: maxBytes %d, files %d: want positive numbers", c.MaxBytes, c.Files)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("decisions: dir: %w", err)
	}
	l := &Log{records: make(chan decisions.Record, room), quit: make(chan struct{})}
	l.writer = writer{config: c, want: func() { l.turn.Store(true) }}
	l.wg.Go(l.run)
	return l, nil
}

// Append takes a record and reports whether the State is wanted next. It does
// not block. After Close it loses what it is given.
func (l *Log) Append(r decisions.Record) (again bool) {
	if l.behind && r.State == nil { // without a beginning it is of no use
		return len(l.records) < room/2
	}
	r.At = time.Now().UnixMilli()
	select {
	case l.records <- r:
		l.behind = false
	default:
		l.behind = true
		return false
	}
	return l.turn.CompareAndSwap(true, false)
}

// Close writes what was taken, and ends the writer. It is called once.
func (l *Log) Close() error {
	close(l.quit)
	l.wg.Wait()
	return l.writer.close()
}

func (l *Log) run() {
	for {
		select {
		case r := <-l.records:
			l.writer.write(r)
		case <-l.quit:
			for len(l.records) > 0 {
				l.writer.write(<-l.records)
			}
			return
		}
		if len(l.records) == 0 {
			l.writer.flush()
		}
	}
}
