// Package mem is a history in memory: the rows of a warehouse as maps, for tests. It
// keeps the rules of history.Batch exactly, so that it is the oracle of the databases.
package mem

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Kept is a row and whether it was reverted.
type Kept[R any] struct {
	Row      R
	Reverted bool
}

// Rows are all rows of a history, by their keys in words.
type Rows struct {
	Nodes       map[string]Kept[history.Node]
	Jobs        map[string]Kept[history.Job]
	Units       map[string]Kept[history.Unit]
	Grants      map[string]Kept[history.Grant]
	Waits       map[string]Kept[history.Wait]
	Quotas      map[string]Kept[history.Quota]
	Preemptions map[string]Kept[history.Preemption]
	Conditions  map[string]Kept[history.Condition]
	Audit       map[string]Kept[history.Audit]
	Slices      map[string]history.Slice
	Slots       map[string]Kept[history.Slot]
	Gaps        []history.Gap
}

// History is a history. Its methods may be called from any goroutine.
type History struct {
	mu       sync.Mutex
	rows     Rows
	position history.Position
	away     error
	batches  int
}

// New returns a history without rows.
func New() *History {
	return &History{rows: Rows{
		Nodes: map[string]Kept[history.Node]{}, Jobs: map[string]Kept[history.Job]{}, Units: map[string]Kept[history.Unit]{}, Grants: map[string]Kept[history.Grant]{},
		Waits: map[string]Kept[history.Wait]{}, Quotas: map[string]Kept[history.Quota]{}, Preemptions: map[string]Kept[history.Preemption]{},
		Conditions: map[string]Kept[history.Condition]{}, Audit: map[string]Kept[history.Audit]{}, Slices: map[string]history.Slice{}, Slots: map[string]Kept[history.Slot]{},
	}}
}

// SetAway has each call fail with err until SetAway(nil).
func (h *History) SetAway(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = err
}

// Batches counts the batches that were written.
func (h *History) Batches() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.batches
}

// Position is that of the last batch.
func (h *History) Position(context.Context) (history.Position, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position, h.away
}

// Write adds a batch. An error is a *history.PositionError, or that of SetAway.
func (h *History) Write(_ context.Context, b history.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away != nil {
		return h.away
	}
	if b.After != h.position.Revision {
		return &history.PositionError{Has: h.position.Revision, After: b.After}
	}
	h.rows.Add(b)
	h.position = history.Position{Revision: b.Upto, Mark: b.Mark}
	h.batches++
	return nil
}

// Repair adds parts of a repair, whatever the position is.
func (h *History) Repair(_ context.Context, parts iter.Seq[history.Batch]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away != nil {
		return h.away
	}
	for b := range parts {
		b.Repair = true
		h.rows.Add(b)
		h.batches++
	}
	return nil
}

// Revert marks the rows above a revision as reverted, and has the history stand there.
func (h *History) Revert(_ context.Context, to resource.Revision) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away != nil {
		return h.away
	}
	h.rows.revert(to)
	h.position = history.Position{Revision: to}
	return nil
}

// Read returns the rows under the keys of a batch, and all rows without an end.
func (h *History) Read(_ context.Context, of history.Batch) (history.Batch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rows.read(of), h.away
}

// LastCounted returns the last slice that has a counter of each slot of the members of
// grants without an end.
func (h *History) LastCounted(context.Context) ([]history.Slice, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := map[string]history.Slice{}
	for _, s := range h.rows.Slices {
		g := h.rows.Grants[string(s.Tx)]
		key := fmt.Sprint(s.Tx, " ", s.Member, " ", s.Slot)
		if s.Counter != nil && s.To.After(s.From) && !g.Reverted && g.Row.Ended.IsZero() && s.From.After(last[key].From) {
			last[key] = s
		}
	}
	return slices.Collect(maps.Values(last)), h.away
}

// Rows returns all rows. Nobody changes what they point to.
func (h *History) Rows() Rows {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rows.clone()
}

// put keeps the row of a key by its revision.
func put[R any](rows map[string]Kept[R], repair bool, key string, row R, revision func(R) resource.Revision, merge func(before R, row *R)) {
	before, known := rows[key]
	if known && !before.Reverted {
		if was, is := revision(before.Row), revision(row); was > is || was == is && !repair {
			return
		}
		if merge != nil {
			merge(before.Row, &row)
		}
	}
	rows[key] = Kept[R]{Row: row}
}

// Add adds the rows of a batch.
func (r *Rows) Add(b history.Batch) {
	for _, x := range b.Nodes {
		put(r.Nodes, b.Repair, string(x.ID), x, func(x history.Node) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Jobs {
		put(r.Jobs, b.Repair, x.UID, x, func(x history.Job) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Units {
		put(r.Units, b.Repair, string(x.UID), x, func(x history.Unit) resource.Revision { return x.Revision }, keepFirst)
	}
	for _, x := range b.Grants {
		put(r.Grants, b.Repair, string(x.Tx), x, func(x history.Grant) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Waits {
		put(r.Waits, b.Repair, waitKey(x), x, func(x history.Wait) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Quotas {
		put(r.Quotas, b.Repair, quotaKey(x), x, func(x history.Quota) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Preemptions {
		put(r.Preemptions, b.Repair, string(x.Tx), x, func(x history.Preemption) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Conditions {
		put(r.Conditions, b.Repair, fmt.Sprint(x.Node, " ", x.Type, " ", x.Revision), x, func(x history.Condition) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Audit {
		put(r.Audit, b.Repair, x.ID, x, func(x history.Audit) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Slots {
		put(r.Slots, b.Repair, string(x.Name), x, func(x history.Slot) resource.Revision { return x.Revision }, nil)
	}
	for _, x := range b.Cuts {
		r.cut(x)
	}
	for _, x := range b.Slices {
		key := fmt.Sprint(x.Tx, " ", x.Member, " ", x.Slot, " ", x.From.UnixMilli())
		if r.Slices[key] = x; !x.To.After(x.From) {
			delete(r.Slices, key)
		}
	}
	r.Gaps = append(slices.Clone(r.Gaps), b.Gaps...)
}

// cut takes back slices.
func (r *Rows) cut(c history.Cut) {
	for key, s := range r.Slices {
		switch {
		case s.Tx != c.Tx || s.Member != c.Member || s.Slot != c.Slot || !s.To.After(c.At):
		case s.From.Before(c.At):
			s.To, s.Counter = c.At, nil
			r.Slices[key] = s
		default:
			delete(r.Slices, key)
		}
	}
}

func waitKey(x history.Wait) string { return fmt.Sprint(x.Unit, " ", x.Since.UnixMilli()) }

func quotaKey(x history.Quota) string {
	return fmt.Sprint(x.Namespace, "/", x.Name, " ", x.Slot, " ", x.From.UnixMilli())
}

// keepFirst keeps the first commit and the first start of a unit.
func keepFirst(before history.Unit, row *history.Unit) {
	row.Scheduled, row.Started = earliest(before.Scheduled, row.Scheduled), earliest(before.Started, row.Started)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// LoseAudit forgets the audit, as retention does with one that is old.
func (h *History) LoseAudit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.rows.Audit)
}

// Lose forgets the row of a unit, as a fault of a disk might.
func (h *History) Lose(unit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.rows.Units, unit)
}
