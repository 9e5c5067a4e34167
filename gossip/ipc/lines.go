package ipc

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// levels are those of serf's log lines, least first.
var levels = []string{"TRACE", "DEBUG", "INFO", "WARN", "ERR"}

// keptLines is how many lines a monitor is shown of the time before it.
const keptLines = 256

// Lines are the latest log lines of a ring, for `serf monitor`. It is an
// io.Writer that takes one line at a time and never fails or blocks. The zero
// value is ready.
type Lines struct {
	mu        sync.Mutex
	kept      []string // at most keptLines
	followers map[chan string]bool
}

// Write takes a line.
func (l *Lines) Write(line []byte) (int, error) {
	text := string(bytes.TrimRight(line, "\n"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == keptLines {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
	l.kept = append(l.kept, text)
	for f := range l.followers {
		select {
		case f <- text:
		default: // a slow reader loses lines
		}
	}
	return len(line), nil
}

// follow returns the lines that are kept and then new ones; a slow reader loses
// some.
func (l *Lines) follow() (kept []string, more chan string) {
	more = make(chan string, keptLines)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followers == nil {
		l.followers = make(map[chan string]bool)
	}
	l.followers[more] = true
	return slices.Clone(l.kept), more
}

func (l *Lines) unfollow(more chan string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.followers, more)
}

// reaches reports whether a line is of at least the level. A line without one
// is shown always.
func reaches(line string, least int) bool {
	_, rest, found := strings.Cut(line, "[")
	name, _, closed := strings.Cut(rest, "]")
	at := slices.Index(levels, name)
	return !found || !closed || at < 0 || at >= least
}

func (c *connection) monitor(seq uint64) error {
	var r monitorRequest
	if err := c.dec.Decode(&r); err != nil {
		return err
	}
	least := slices.Index(levels, strings.ToUpper(r.LogLevel))
	lines := c.server.config.Lines
	switch {
	case least < 0:
		return c.send(seq, fmt.Sprintf("Unknown log level: %s", r.LogLevel), nil)
	case lines == nil:
		return c.send(seq, unsupportedCommand, nil)
	case !c.monitoring.CompareAndSwap(false, true):
		return c.send(seq, monitorExists, nil)
	}
	kept, more := lines.follow()
	return c.begin(seq, func(ctx context.Context) {
		for _, line := range kept {
			if reaches(line, least) && c.send(seq, "", &logRecord{line}) != nil {
				return
			}
		}
		for {
			select {
			case <-ctx.Done():
				return
			case line := <-more:
				if reaches(line, least) && c.send(seq, "", &logRecord{line}) != nil {
					return
				}
			}
		}
	}, func() {
		lines.unfollow(more)
		c.monitoring.Store(false)
	})
}
