package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/resource"
)

// scribe keeps the folder of assignment files in step with what the owner has
// journaled, on a goroutine of its own, so that no decision waits for the file
// system. Wishes are carried out in the order in which they came; one that was
// overtaken by a later wish for the same transaction never reaches the disk.
// A failure is tried again: the journal is the truth, and the grant stands.
type scribe struct {
	files *handoff.Dir
	log   *slog.Logger
	more  chan struct{} // capacity 1: there is something to do

	mu      sync.Mutex
	wanted  map[resource.TxID]handoff.Grant // files that should be there
	written map[resource.TxID]handoff.Grant // files that are there
	pending []resource.TxID                 // to compare, oldest first
	pruning bool
}

func newScribe(files *handoff.Dir, log *slog.Logger) *scribe {
	return &scribe{
		files: files, log: log, more: make(chan struct{}, 1),
		wanted: map[resource.TxID]handoff.Grant{}, written: map[resource.TxID]handoff.Grant{},
	}
}

// start writes the files of the replayed ledger, before run; what cannot be
// written now, on a full disk say, run tries again. What else is in the folder
// stays for now, unless that was wished otherwise: a journal that lost its memory
// may have forgotten what still runs, and only the store knows (see prune).
func (s *scribe) start(live []handoff.Grant) {
	for _, g := range live {
		s.wanted[g.Tx] = g
		s.pending = append(s.pending, g.Tx)
	}
	s.work()
}

// prune wishes that what belongs to no grant goes. The owner asks for it once
// the store's records have been applied; it does not block.
func (s *scribe) prune() {
	s.mu.Lock()
	s.pruning = true
	s.mu.Unlock()
	wake(s.more)
}

// put wishes for the files of a grant; it does not block.
func (s *scribe) put(g handoff.Grant) {
	s.mu.Lock()
	if _, there := s.wanted[g.Tx]; !there {
		s.wanted[g.Tx] = g
		s.pending = append(s.pending, g.Tx)
	}
	s.mu.Unlock()
	wake(s.more)
}

// remove wishes that a grant has no files; it does not block.
func (s *scribe) remove(tx resource.TxID) {
	s.mu.Lock()
	if _, there := s.wanted[tx]; there {
		delete(s.wanted, tx)
		s.pending = append(s.pending, tx)
	}
	s.mu.Unlock()
	wake(s.more)
}

// run works until ctx ends, and then once more through what is left.
func (s *scribe) run(ctx context.Context) {
	for {
		failed := s.work()
		var again <-chan time.Time
		if failed {
			again = time.After(retryAfter)
		}
		select {
		case <-s.more:
		case <-again:
		case <-ctx.Done():
			s.work()
			return
		}
	}
}

// work goes through the pending wishes and keeps those that fail.
func (s *scribe) work() (failed bool) {
	s.mu.Lock()
	batch := s.pending
	s.pending = nil
	s.mu.Unlock()
	var again []resource.TxID
	for _, tx := range batch {
		if err := s.settle(tx); err != nil {
			s.log.Error("assignment file not up to date; trying again", "tx", string(tx), "error", err)
			again = append(again, tx)
		}
	}
	if err := s.clean(); err != nil {
		s.log.Error("assignment folder not cleaned; trying again", "error", err)
		failed = true
	}
	s.mu.Lock()
	s.pending = append(again, s.pending...)
	s.mu.Unlock()
	return failed || len(again) > 0
}

// clean prunes if that is wished. What is wanted or written stays.
func (s *scribe) clean() error {
	s.mu.Lock()
	pruning := s.pruning
	keep := make([]handoff.Grant, 0, len(s.wanted)+len(s.written))
	for _, g := range s.wanted {
		keep = append(keep, g)
	}
	for _, g := range s.written {
		keep = append(keep, g)
	}
	s.mu.Unlock()
	if !pruning {
		return nil
	}
	if err := s.files.Prune(keep); err != nil {
		return err
	}
	s.mu.Lock()
	s.pruning = false
	s.mu.Unlock()
	return nil
}

// settle makes one transaction's files what they should be.
func (s *scribe) settle(tx resource.TxID) error {
	s.mu.Lock()
	want, wanted := s.wanted[tx]
	have, there := s.written[tx]
	s.mu.Unlock()
	switch {
	case wanted && !there:
		if err := s.files.Write(want); err != nil {
			return err
		}
		s.mu.Lock()
		s.written[tx] = want
		s.mu.Unlock()
	case !wanted && there:
		if err := s.files.Remove(have); err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.written, tx)
		s.mu.Unlock()
	}
	return nil
}
