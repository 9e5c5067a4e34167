package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterd/muster/coordinator/history/answer"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/service"
)

// settleEvery is the time between two looks for hours whose slices have changed. Sums
// are at most this much older than their slices.
const settleEvery = 30 * time.Second

// past answers about the past, from this coordinator's connection to the history.
func (d *Daemon) past() service.Past {
	if d.history == nil {
		return service.NoPast{}
	}
	return answer.New(d.history.door.warehouse, d.log)
}

// sum keeps the sums of usage, in the coordinator whose projector is elected, until ctx
// ends. It writes beside the projector and never makes it wait for long.
func (h *historian) sum(ctx context.Context, prices *usage.Prices, log *slog.Logger) {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	priced, failing := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if h.projector.Status().Phase != projector.Projecting {
			priced = false
			continue
		}
		err := h.sumOnce(ctx, prices, &priced)
		if (err != nil) != failing && ctx.Err() == nil {
			if failing = err != nil; failing {
				log.Warn("history_sums_wait", "error", err)
			} else {
				log.Info("history_sums_continue")
			}
		}
	}
}

// sumOnce sets the price list, once a term, and computes the hours that have changed.
func (h *historian) sumOnce(ctx context.Context, prices *usage.Prices, priced *bool) error {
	w, err := h.door.warehouse(ctx)
	if err != nil {
		return err
	}
	if prices != nil && !*priced {
		if err := tally.SetPrices(ctx, w, *prices); err != nil {
			return err
		}
		*priced = true
	}
	_, err = tally.Settle(ctx, w, time.Now())
	return err
}
