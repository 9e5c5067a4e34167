// Package assignment keeps the folder of assignment files in step with the grants
// of the agent. The agent's owner decides which grants have files; the package
// decides when each file is written and tried again.
package assignment

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/resource"
)

// Writer keeps the folder of assignment files in step with the
// owner's journal, on a goroutine of its own, so that no decision waits for the
// file system. Wishes are carried out in the order in which they came; one that
// was overtaken by a later wish for the same transaction never reaches the
// disk. A failure is tried again: the journal is the truth, and the grant
// stands. Until it succeeds the node takes no new grants, and the leader gets
// no reply that this grant can be used.
type Writer struct {
	node  resource.NodeID
	files *handoff.Dir
	log   *slog.Logger
	more  chan struct{} // capacity 1: there is something to do

	mu      sync.Mutex
	wanted  map[resource.TxID]handoff.Grant // files that should be there
	written map[resource.TxID]handoff.Grant // files that are there
	pending []resource.TxID                 // to compare, oldest first
	pruning bool
	// closed: launchers may see no files. withheld are the grants that were
	// wanted when the writer closed or since, and those without a record that
	// is COMMITTED, until they are confirmed. All of them are in wanted.
	closed   bool
	withheld map[resource.TxID]bool
	// awaited are grants whose files the owner waits for, see ready.
	awaited map[resource.TxID]bool
	// trouble is why no more grants may be promised: the last attempt to write
	// files, or to keep room for them, failed. nil while all is well.
	trouble error

	listener Listener
}

// Listener takes the news of a Writer, on the goroutine of Run.
type Listener struct {
	// Arrived takes a grant whose files Ready has missed: launchers can read
	// them now.
	Arrived func(ctx context.Context, tx resource.TxID)
	// Troubled is called when Failure has another answer.
	Troubled func(ctx context.Context)
}

// retryAfter is the time between two attempts to write files that failed.
const retryAfter = time.Second

// roomEvery is the time between two looks at the room for files.
const roomEvery = 10 * time.Second

// New returns a writer of the folder of a node. Start comes first, then Run.
func New(node resource.NodeID, files *handoff.Dir, log *slog.Logger, to Listener) *Writer {
	return &Writer{
		node: node, files: files, log: log, more: make(chan struct{}, 1),
		wanted: map[resource.TxID]handoff.Grant{}, written: map[resource.TxID]handoff.Grant{}, withheld: map[resource.TxID]bool{},
		awaited: map[resource.TxID]bool{}, listener: to,
	}
}

// Ready reports whether launchers can read the files of a grant, or the grant
// wants none. Otherwise Listener.Arrived is called once they can.
func (s *Writer) Ready(tx resource.TxID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, wanted := s.wanted[tx]
	_, there := s.written[tx]
	if !wanted || there && s.shows(tx) {
		return true
	}
	s.awaited[tx] = true
	return false
}

// Failure returns why no more grants may be promised; nil while all is well.
func (s *Writer) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// wake has Run look at the wishes.
func (s *Writer) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// want is called with mu held, or before Run.
func (s *Writer) want(g handoff.Grant) {
	s.wanted[g.Tx] = g
	if s.closed {
		s.withheld[g.Tx] = true
	}
	s.pending = append(s.pending, g.Tx)
}

// shows reports whether a grant's files should be there; mu is held.
func (s *Writer) shows(tx resource.TxID) bool {
	_, wanted := s.wanted[tx]
	return wanted && !s.closed && !s.withheld[tx]
}

// Close wishes that launchers see no files, neither of the grants wanted now
// nor of later ones; it does not block.
func (s *Writer) Close() {
	s.mu.Lock()
	s.closed, s.pruning = true, true
	for tx := range s.wanted {
		s.withheld[tx] = true
		s.pending = append(s.pending, tx)
	}
	s.mu.Unlock()
	s.wake()
}

// Reopen ends Close for the confirmed grants and for later ones; the other
// grants stay withheld. It does not block.
func (s *Writer) Reopen() {
	s.mu.Lock()
	if s.closed {
		s.closed = false
		for tx := range s.wanted {
			s.pending = append(s.pending, tx)
		}
	}
	s.mu.Unlock()
	s.wake()
}

// Confirm makes the files of a withheld grant visible again; it does not block.
func (s *Writer) Confirm(tx resource.TxID) {
	s.mu.Lock()
	if s.withheld[tx] {
		delete(s.withheld, tx)
		s.pending = append(s.pending, tx)
	}
	s.mu.Unlock()
	s.wake()
}

// ClosedTo reports whether all files are withheld, and how many are.
func (s *Writer) ClosedTo() (closed bool, withheld int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed, len(s.withheld)
}

// Start writes the files of the replayed ledger, before Run; none before the
// registration, for the grants of a new incarnation may have ended without a trace
// in its journal. If a write fails, on a full disk say, Run tries again. Other files
// in the folder stay for now, unless Prune was called: a damaged journal may lack
// grants whose workloads still run, and only the store has their records.
func (s *Writer) Start(g follow.Group) {
	if g.Ledger.Registration() > 0 {
		for _, held := range runnable(g) {
			s.want(s.filesOf(held))
		}
	}
	s.work(context.Background(), true)
}

// Prune wishes that files of no grant are removed. The owner calls prune once
// the store's records have been applied; it does not block.
func (s *Writer) Prune() {
	s.mu.Lock()
	s.pruning = true
	s.mu.Unlock()
	s.wake()
}

// Renew wishes for the notice of a grant in wanted files. Renew does not block.
func (s *Writer) Renew(g handoff.Grant) {
	s.mu.Lock()
	if is, there := s.wanted[g.Tx]; there && is.End != g.End {
		s.wanted[g.Tx] = g
		s.pending = append(s.pending, g.Tx)
	}
	s.mu.Unlock()
	s.wake()
}

// Put wishes for the files of a grant; it does not block.
func (s *Writer) Put(g handoff.Grant) {
	s.mu.Lock()
	if _, there := s.wanted[g.Tx]; !there {
		s.want(g)
	}
	s.mu.Unlock()
	s.wake()
}

// Withhold is Put for a grant that has to be confirmed first; one that has its
// files keeps them.
func (s *Writer) Withhold(g handoff.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.wanted[g.Tx]; !there {
		s.withheld[g.Tx] = true
		s.want(g)
	}
}

// Remove wishes that a grant has no files; it does not block.
func (s *Writer) Remove(tx resource.TxID) {
	s.mu.Lock()
	if _, there := s.wanted[tx]; there {
		delete(s.wanted, tx)
		delete(s.withheld, tx)
		delete(s.awaited, tx)
		s.pending = append(s.pending, tx)
	}
	s.mu.Unlock()
	s.wake()
}

// Run works until ctx ends, and then once more through the pending wishes.
func (s *Writer) Run(ctx context.Context) {
	look := time.NewTicker(roomEvery)
	defer look.Stop()
	looks := false
	for {
		failed := s.work(ctx, looks)
		looks = false
		var again <-chan time.Time
		if failed {
			again = time.After(retryAfter)
		}
		select {
		case <-s.more:
		case <-again:
		case <-look.C:
			looks = true
		case <-ctx.Done():
			s.work(ctx, false)
			return
		}
	}
}

// work goes through the pending wishes, keeps those that fail, and then tops up
// the room for later grants. look: even if no file has used the room.
func (s *Writer) work(ctx context.Context, look bool) (failed bool) {
	s.mu.Lock()
	batch := s.pending
	s.pending = nil
	s.mu.Unlock()
	var again []resource.TxID
	var trouble error
	for _, tx := range batch {
		if err := s.settle(ctx, tx); err != nil {
			s.log.Error("assignment_file_not_written", "tx", string(tx), "error", err, "retry_in", retryAfter)
			again, trouble = append(again, tx), err
		}
	}
	if err := s.clean(); err != nil {
		s.log.Error("assignment_folder_not_cleaned", "error", err, "retry_in", retryAfter)
		failed = true
	}
	if look || !s.files.Reserved() {
		if err := s.files.Reserve(); trouble == nil {
			trouble = err
		}
	}
	s.mu.Lock()
	s.pending = append(again, s.pending...)
	changed := (trouble == nil) != (s.trouble == nil)
	s.trouble = trouble
	s.mu.Unlock()
	if changed {
		s.listener.Troubled(ctx)
	}
	return failed || trouble != nil
}

// clean prunes if that is wished. Files that are wanted or written stay.
func (s *Writer) clean() error {
	s.mu.Lock()
	pruning := s.pruning
	keep := make([]handoff.Grant, 0, len(s.wanted)+len(s.written))
	for tx, g := range s.wanted {
		if s.shows(tx) {
			keep = append(keep, g)
		}
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

// settle writes or removes one transaction's files, as wished.
func (s *Writer) settle(ctx context.Context, tx resource.TxID) error {
	s.mu.Lock()
	want, wanted := s.wanted[tx], s.shows(tx)
	have, there := s.written[tx]
	s.mu.Unlock()
	switch {
	case wanted && (!there || have.End != want.End):
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
	s.mu.Lock()
	_, there = s.written[tx]
	arrived := s.awaited[tx] && there && s.shows(tx)
	if arrived {
		delete(s.awaited, tx)
	}
	s.mu.Unlock()
	if arrived {
		s.listener.Arrived(ctx, tx)
	}
	return nil
}
