package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/history/warehouse"
)

const (
	// retainFirst is the time between the start of a coordinator and the first removal of
	// old rows, retainEvery that between two removals.
	retainFirst = 10 * time.Minute
	retainEvery = 6 * time.Hour
	// retainAtMost bounds one removal; the next one goes on.
	retainAtMost = time.Hour
)

// prune removes old rows in the coordinator whose projector is elected, until ctx ends.
func (h *historian) prune(ctx context.Context, keep warehouse.Retention, log *slog.Logger) {
	for wait := retainFirst; ; wait = retainEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if h.projector.Status().Phase != projector.Projecting {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, retainAtMost)
		done, err := h.retain(bounded, keep, false)
		cancel()
		for _, r := range done {
			if r.Rows > 0 || len(r.Detached) > 0 || len(r.Dropped) > 0 {
				log.Info("history_pruned", "table", r.Table, "before", r.Before, "rows", r.Rows, "detached", r.Detached, "dropped", r.Dropped)
			}
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("history_not_pruned", "error", err)
		}
	}
}

// retain removes the rows that are older than their periods by the clock of the database,
// or only counts them.
func (h *historian) retain(ctx context.Context, keep warehouse.Retention, dryRun bool) ([]warehouse.Retained, error) {
	w, err := h.door.warehouse(ctx)
	if err != nil {
		return nil, err
	}
	now, err := w.Now(ctx)
	if err != nil {
		return nil, err
	}
	return w.Retain(ctx, keep, now, dryRun)
}
