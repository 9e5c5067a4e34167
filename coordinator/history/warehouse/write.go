package warehouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Write adds a batch, and moves the position, in one SQL transaction: both are in the
// database, or neither. A *history.PositionError refuses a batch whose After is not
// the position. After another error, as of a connection that ended at the commit, the
// batch may be in the history or not: Position says it.
func (w *Warehouse) Write(ctx context.Context, b history.Batch) error {
	if b.Upto < b.After || len(b.Mark) > MaxMark {
		return fmt.Errorf("batch after revision %d up to %d with a mark of %d bytes: want a range and at most %d bytes", b.After, b.Upto, len(b.Mark), MaxMark)
	}
	err := w.write(ctx, b, convert(b), func(t *transaction, at history.Position) error {
		if at.Revision != b.After {
			return &history.PositionError{Has: at.Revision, After: b.After}
		}
		return t.moveTo(ctx, history.Position{Revision: b.Upto, Mark: b.Mark}, b.At)
	})
	var position *history.PositionError
	switch {
	case errors.As(err, &position):
		return position
	case err != nil:
		return fmt.Errorf("write the batch after revision %d up to %d: %w", b.After, b.Upto, err)
	}
	return nil
}

// Repair writes parts of a repair (Batch.Repair), whatever the position is, and leaves the
// position alone. Each part is in one SQL transaction, and the next is made ready
// meanwhile. After an error the parts before are in the history.
func (w *Warehouse) Repair(ctx context.Context, parts iter.Seq[history.Batch]) error {
	type part struct {
		batch history.Batch
		set   batch
	}
	ready := make(chan part)
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer close(ready)
		for b := range parts {
			b.Repair = true
			select {
			case ready <- part{b, convert(b)}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	work.Go(func() error {
		for p := range ready {
			if err := w.write(ctx, p.batch, p.set, func(*transaction, history.Position) error { return nil }); err != nil {
				return fmt.Errorf("write a part of a repair: %w", err)
			}
		}
		return nil
	})
	return work.Wait()
}

// write adds the rows of a batch in one SQL transaction, in which move judges the position
// and moves it. No other batch is written meanwhile.
func (w *Warehouse) write(ctx context.Context, b history.Batch, set batch, move func(*transaction, history.Position) error) error {
	ctx, cancel := context.WithTimeout(ctx, WriteTimeout)
	defer cancel()
	if err := w.ensureMonths(ctx, set.monthly()...); err != nil {
		return fmt.Errorf("make the months of a batch: %w", err)
	}
	unknown := w.unknownSlots(b)
	err := w.transact(ctx, func(t *transaction) error {
		lock := ""
		if w.dialect == Postgres {
			lock = " FOR UPDATE"
		}
		position, err := positionOf(ctx, t, lock)
		if err != nil {
			return err
		}
		if err := move(t, position); err != nil {
			return err
		}
		if err := t.putSlots(ctx, b.Slots, unknown); err != nil {
			return err
		}
		t.repair = b.Repair
		return set.write(ctx, t)
	})
	var position *history.PositionError
	if err != nil && !errors.As(err, &position) {
		w.forgetMonths() // another process may have detached one
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range unknown {
		w.slots[name] = true
	}
	return nil
}

// transact runs f in one SQL transaction, which it rolls back where f fails.
func (w *Warehouse) transact(ctx context.Context, f func(*transaction) error) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &transaction{Tx: tx, dialect: w.dialect, prepared: map[*table]*sql.Stmt{}}
	if err := f(t); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return tx.Commit()
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil // the context's end has rolled it back
	}
	return err
}

// moveTo moves the position; at is the instant of the newest change before it.
func (t *transaction) moveTo(ctx context.Context, p history.Position, at time.Time) error {
	_, err := t.ExecContext(ctx, t.dialect.sql("UPDATE history_position SET revision = ?, mark = ?, at = coalesce(?, at), written_at = ? WHERE id = 1"),
		int64(p.Revision), p.Mark, t.dialect.instant(at), t.dialect.instant(time.Now()))
	return err
}

// unknownSlots are the names in a batch that have no slot type yet.
func (w *Warehouse) unknownSlots(b history.Batch) map[resource.Name]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	unknown := map[resource.Name]bool{}
	note := func(vectors ...resource.Vector) {
		for _, v := range vectors {
			for name := range v {
				if !w.slots[name] {
					unknown[name] = true
				}
			}
		}
	}
	for _, n := range b.Nodes {
		note(n.Capacity, n.Allocatable)
	}
	for _, u := range b.Units {
		note(u.Requests, u.Limits)
	}
	for _, g := range b.Grants {
		for _, m := range g.Members {
			note(m.Requested, m.Allocated, m.Limits)
		}
	}
	for _, q := range b.Quotas {
		note(resource.Vector{q.Slot: 0})
	}
	for _, p := range b.Preemptions {
		note(p.Freed)
	}
	for _, s := range b.Slices {
		if !w.slots[s.Slot] {
			unknown[s.Slot] = true
		}
	}
	return unknown
}

// putSlots writes the slot types of a batch, and makes those that nobody described.
func (t *transaction) putSlots(ctx context.Context, described []history.Slot, unknown map[resource.Name]bool) error {
	made := &rows{table: slotTypes}
	names := maps.Clone(unknown)
	for _, s := range latestOf(described, func(s history.Slot) resource.Name { return s.Name }, func(s history.Slot) resource.Revision { return s.Revision }) {
		slotRow(made, s)
		delete(names, s.Name)
	}
	for name := range names {
		slotRow(made, describedSlot(name))
	}
	return t.put(ctx, made)
}

// seedSlots makes the slot types of the built-in resources, and learns the others.
func (w *Warehouse) seedSlots(ctx context.Context) error {
	built := map[resource.Name]bool{}
	for _, name := range builtInNames() {
		built[name] = true
	}
	if err := w.transact(ctx, func(t *transaction) error { return t.putSlots(ctx, nil, built) }); err != nil {
		return err
	}
	found, err := w.db.QueryContext(ctx, "SELECT slot_name FROM resource_slot_types")
	if err != nil {
		return err
	}
	defer found.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slots = map[resource.Name]bool{}
	for found.Next() {
		var name resource.Name
		if err := found.Scan(&name); err != nil {
			return err
		}
		w.slots[name] = true
	}
	return found.Err()
}
