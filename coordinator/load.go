package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// errStoreAway ends a term that could not begin.
var errStoreAway = errors.New("the store does not answer, or has another leader")

// clockError is how far the clocks of coordinators may differ without a word.
const clockError = 2 * time.Second

// load has the leader rebuild its view from a read at one revision that is not
// older than its election, and returns that revision. It runs before the loop.
func (t *term) load(ctx context.Context, from ranger) (resource.Revision, error) {
	read := &reader{store: from}
	in := lead.Loaded{
		Nodes: read.prefix(ctx, record.NodesPrefix), Bans: read.prefix(ctx, record.BansPrefix), Quotas: read.prefix(ctx, record.QuotaPrefix),
		Jobs: read.prefix(ctx, record.JobsPrefix), Units: read.prefix(ctx, record.UnitsPrefix), Orders: read.prefix(ctx, record.OrderPrefix),
		Configured: read.prefix(ctx, record.ConfiguredKey),
		Txs:        read.prefix(ctx, record.TxPrefix), Ready: read.prefix(ctx, record.ReadyPrefix), Requests: read.prefix(ctx, record.RequestsPrefix),
	}
	for _, prefix := range edit.Prefixes() {
		in.Objects = append(in.Objects, read.prefix(ctx, prefix)...)
	}
	if warm, is := from.(follow.Snapshot); is {
		in.Cached = warm.Requests
	}
	if read.err != nil {
		return 0, fmt.Errorf("load the state: %w: %w", errStoreAway, read.err)
	}
	var err error
	t.clock.ahead = max(0, time.Until(time.UnixMilli(record.NewestInstant(in.Txs, in.Ready, in.Orders))))
	if t.clock.ahead > clockError {
		t.log.Warn("clock_behind_store", "by", t.clock.ahead)
	}
	now := t.clock.now()
	if t.observeLoad != nil {
		t.observeLoad(now, in)
	}
	t.effects, err = t.Leader.Load(now, in, t.effects[:0])
	t.carryOut(t.effects)
	if err != nil {
		return 0, fmt.Errorf("load the state at revision %d: %w", read.revision, err)
	}
	return read.revision, nil
}

// clock is a leader's: no instant of a term is before an instant of an earlier leader.
type clock struct {
	ahead time.Duration // of the host's clock; constant after the load
}

func (c clock) now() time.Time { return time.Now().Add(c.ahead) }

// ranger is a source to load from: the store, or a snapshot of it.
type ranger interface {
	Range(ctx context.Context, prefix string, o store.RangeOptions) ([]record.KV, resource.Revision, error)
}

// reader reads several prefixes at the revision of the first.
type reader struct {
	store    ranger
	revision resource.Revision
	err      error
}

func (r *reader) prefix(ctx context.Context, prefix string) []record.KV {
	if r.err != nil {
		return nil
	}
	var kvs []record.KV
	var revision resource.Revision
	kvs, revision, r.err = r.store.Range(ctx, prefix, store.RangeOptions{AtRevision: r.revision})
	if r.revision == 0 {
		r.revision = revision
	}
	return kvs
}
