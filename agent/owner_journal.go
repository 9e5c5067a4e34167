package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
)

// checkRoom makes sure, before a promise, that the journal can hold it and that
// launchers will find its files: a full disk refuses new reservations and
// nothing else.
func (o *owner) checkRoom(group []item) error {
	promises := o.full != ""
	for i := range group {
		if _, ok := group[i].command.(grant.Reserve); ok || group[i].room {
			promises = true
		}
	}
	if !promises {
		return nil
	}
	err := o.journal.Reserve()
	full := errors.Is(err, journal.ErrDiskFull)
	if err != nil && !full {
		return err
	}
	why := ""
	switch files := o.assignments.Failure(); {
	case full:
		why = "the agent's disk is full: no promise without its record"
	case files != nil:
		why = fmt.Sprintf("the agent cannot write assignment files, without which nothing can be started: %v", files)
	}
	if why == o.full {
		return nil
	}
	changed := (why == "") != (o.full == "")
	o.full = why
	o.ledger.SetDiskFull(why)
	if changed {
		o.log.Warn("disk_full_changed", "disk_full", full, "path", o.journal.Path(), "reason", why)
		o.tell(o.health())
	}
	return nil
}

// record writes the group to the journal. Tombstones are made durable before
// any reply about them leaves; HELD soon after.
func (o *owner) record() error {
	if len(o.payloads) == 0 {
		return nil
	}
	// The room for promises was made sure of before they were decided, so these
	// records may use the space that is left.
	if err := o.journal.AppendEssential(o.payloads...); err != nil {
		return fmt.Errorf("agent: journal a group of %d decisions: %w", len(o.payloads), err)
	}
	o.agent.metrics.appends.Add(float64(len(o.payloads)))
	switch {
	case o.urgent:
		o.agent.metrics.syncs.Inc()
		if err := o.journal.Sync(); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	case o.held:
		wake(o.syncing)
	}
	return nil
}

// syncer makes HELD durable within Config.HeldSync, many at once, without
// keeping the owner from its work.
func (o *owner) syncer(ctx context.Context) {
	for {
		select {
		case <-o.syncing:
		case <-ctx.Done():
			return
		}
		if !pause(ctx, o.agent.config.HeldSync/2) {
			return
		}
		o.agent.metrics.syncs.Inc()
		if err := o.journal.Sync(); err != nil {
			o.syncFailed <- fmt.Errorf("agent: %w", err)
			return
		}
	}
}

// compact rewrites a journal that is mostly history.
func (o *owner) compact() error {
	if o.journal.Size() < max(compactAt, 2*o.keep) {
		return nil
	}
	events := o.ledger.SnapshotEvents()
	payloads := make([][]byte, len(events))
	for i := range events {
		payloads[i] = ledger.AppendEvents(nil, events[i:i+1])
	}
	before := o.journal.Size()
	if err := o.journal.Rewrite(payloads); err != nil {
		if errors.Is(err, journal.ErrDiskFull) {
			o.keep = before // try again when it has doubled
			return nil
		}
		return fmt.Errorf("agent: compact: %w", err)
	}
	o.keep = o.journal.Size()
	o.log.Info("journal_compacted", "before_bytes", before, "after_bytes", o.keep)
	return nil
}
