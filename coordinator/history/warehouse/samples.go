package warehouse

import (
	"context"
	"fmt"

	"github.com/musterd/muster/coordinator/history"
)

// RecordHeartbeats adds samples of nodes. A sample that the history has already stays
// as it is; samples of one node within one minute are all kept, the caller thins them.
func (w *Warehouse) RecordHeartbeats(ctx context.Context, samples []history.Heartbeat) error {
	r := &rows{table: heartbeats}
	for _, h := range lastOf(samples, func(h history.Heartbeat) string { return fmt.Sprint(h.Node, "\x00", bounded(h.At).UnixMilli()) }) {
		heartbeatRow(r, h)
	}
	return w.record(ctx, r)
}

// RecordQuotaUsage adds the use of limits of quotas, and replaces what the history has
// of the same limits and instants.
func (w *Warehouse) RecordQuotaUsage(ctx context.Context, samples []history.QuotaUsage) error {
	r := &rows{table: quotaUsage}
	for _, q := range lastOf(samples, func(q history.QuotaUsage) string {
		return fmt.Sprint(q.Tenant, "\x00", q.Namespace, "\x00", q.Name, "\x00", q.Slot, "\x00", bounded(q.At).UnixMilli())
	}) {
		quotaUsageRow(r, q)
	}
	return w.record(ctx, r)
}

func (w *Warehouse) record(ctx context.Context, r *rows) error {
	ctx, cancel := context.WithTimeout(ctx, WriteTimeout)
	defer cancel()
	if err := w.ensureMonths(ctx, r); err != nil {
		return err
	}
	err := w.transact(ctx, func(t *transaction) error { return t.put(ctx, r) })
	if err != nil {
		w.forgetMonths() // another process may have detached one
	}
	return err
}
