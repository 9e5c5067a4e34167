package warehouse

import (
	"context"
	"fmt"

	"github.com/musterd/muster/coordinator/history"
)

// Gaps returns the gaps of the history, ascending by revision.
func (w *Warehouse) Gaps(ctx context.Context) ([]history.Gap, error) {
	r := reader{w, ctx, w.db, nil}
	list := each(&r, gaps, every, r.gap)
	if r.err != nil {
		return nil, fmt.Errorf("read the gaps of the history: %w", r.err)
	}
	return list, nil
}
