package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// The bounds of Config.AssumeDeadAfter. Below the lower one the lease of a node
// (40 s) would hardly have ended when its agent stops what runs.
const (
	MinAssumeDead = time.Minute
	MaxAssumeDead = 24 * time.Hour
)

// AssumeDeadLabel is the label by which coordinators show a node's
// Config.AssumeDeadAfter.
const AssumeDeadLabel = "muster.dev/assume-dead-after"

// stopGrace is at most the time between the notice of the assume-dead policy
// and the stop: the grace of an eviction that names none.
const stopGrace = 30 * time.Second

// contactPhase is the phase of a lack of contact.
type contactPhase uint8

const (
	inContact   contactPhase = iota
	contactLate              // for half the limit
	stopNoticed              // for the limit: grace runs
	contactLost              // grace is over
)

// phase returns the phase that the time since a contact amounts to. All
// workloads are stopped at the latest after 1.5 times the limit: coordinators
// wait twice as long, and the rest is for clocks of different rates
// (docs/adr/0012-assume-dead.md).
func (c contact) phase(now time.Time) contactPhase {
	if c.after == 0 {
		return inContact
	}
	switch age := now.Sub(c.at); {
	case age < c.after/2:
		return inContact
	case age < c.after:
		return contactLate
	case age < c.after+min(stopGrace, c.after/2):
		return stopNoticed
	}
	return contactLost
}

// contactState keeps the contact of an agent, in memory and in its file. Its methods
// may be called from any goroutine and may block on the disk.
type contactState struct {
	path   string
	wanted time.Duration // by the configuration; 0 is off
	now    func() time.Time
	log    *slog.Logger

	mu    sync.Mutex
	known contact
	file  *os.File // nil before the first write
	bad   bool     // the last write failed
}

// openContactState reads the file of an earlier process. Only a file of this
// boot counts: after a start of the machine no workload runs before the agent
// has registered. A file that cannot be read counts as contact at the zero of
// the clock, long ago.
func openContactState(dir, boot string, wanted time.Duration, now func() time.Time, log *slog.Logger) (*contactState, error) {
	s := &contactState{path: filepath.Join(dir, "contact"), wanted: wanted, now: now, log: log, known: contact{boot: boot}}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("agent: last contact: %w", err)
	}
	switch c, err := parseContact(data); {
	case err != nil:
		log.Error("contact_unreadable", "path", s.path, "error", err, "effect", "the last contact counts as long ago")
		s.assumeNothing()
	case c.boot == boot:
		s.known = c
	}
	return s, nil
}

// assumeNothing takes the careful side: the limit that coordinators count on is
// unknown, and so are the running workloads.
func (s *contactState) assumeNothing() {
	s.known.at, s.known.stopped = time.Unix(0, 0), true
	if s.known.after = s.wanted; s.wanted == 0 {
		s.known.after = MinAssumeDead
	}
}

// wiped records that the journal is new. If no contact is known either, the
// disk may be new too, while workloads of the old one still run.
func (s *contactState) wiped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.after == 0 && s.wanted > 0 {
		s.assumeNothing()
	}
}

// announce returns the limit to announce to coordinators. From then on they may
// count on it, so announce writes it to disk first; a shorter limit announced
// earlier stays in force.
func (s *contactState) announce() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == 0 || s.known.after > 0 && s.known.after <= s.wanted {
		return s.wanted
	}
	next := s.known
	if next.after == 0 {
		next.at = s.now() // nobody has counted on anything so far
	}
	next.after = s.wanted
	if err := s.write(next); err != nil {
		return s.known.after // a limit that is not on disk is not announced
	}
	s.known = next
	return s.wanted
}

// registered takes note of a registration that left at a time and announced a
// limit: it is the store's now.
func (s *contactState) registered(announced time.Duration, left time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.known
	next.after = announced
	s.take(next, left)
}

// kept takes note of a heartbeat that left at a time and kept the lease.
func (s *contactState) kept(left time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(s.known, left)
}

// take is called with mu held.
func (s *contactState) take(next contact, left time.Time) {
	if left.After(next.at) {
		next.at = left
	}
	if next == s.known {
		return
	}
	if next.after > 0 || s.known.after > 0 {
		// A contact that is not on disk is one less: the next process stops earlier.
		_ = s.write(next)
	}
	s.known = next
}

// stop notes that assignments are taken away, resumed that all are back.
func (s *contactState) stop()    { s.mark(true) }
func (s *contactState) resumed() { s.mark(false) }

func (s *contactState) mark(stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.stopped != stopped {
		s.known.stopped = stopped
		_ = s.write(s.known) // a process that starts late marks it again
	}
}

// write puts a contact over the one before: in place, so that a full disk does
// not keep it out. No fsync: an OS crash that loses the write voids the contact
// too. write is called with mu held.
func (s *contactState) write(c contact) error {
	data, err := c.encode()
	if err == nil && s.file == nil {
		s.file, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil {
		_, err = s.file.WriteAt(data, 0)
	}
	if failed := err != nil; failed != s.bad {
		if s.bad = failed; failed {
			s.log.Error("contact_not_written", "path", s.path, "error", err, "effect", "after a restart the agent may stop workloads too early, never too late")
		}
	}
	return err
}

// state is the contact and how far the lack of a newer one has come.
func (s *contactState) state() (contact, contactPhase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.known.phase(s.now())
}

func (s *contactState) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
