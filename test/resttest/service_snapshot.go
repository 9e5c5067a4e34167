package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// TakeSnapshot implements service.Snapshots.
func (c *Cluster) TakeSnapshot(ctx context.Context) (*api.ClusterSnapshot, error) {
	state, err := ask[*lead.Captured](ctx, c, lead.CaptureState{})
	if err != nil {
		return nil, err
	}
	var keys []record.KV
	at := state.Revision
	for _, prefix := range capture.Prefixes() {
		kvs, revision, err := c.store.Range(ctx, prefix, store.RangeOptions{})
		if err != nil {
			return nil, err
		}
		keys, at = append(keys, kvs...), max(at, revision)
	}
	d, err := capture.New("rest", state, at, keys)
	if err != nil {
		return nil, err
	}
	return coordinator.ShowSnapshot(d)
}

// TakeSnapshot implements service.Service.
func (NotLeading) TakeSnapshot(context.Context) (*api.ClusterSnapshot, error) {
	return nil, notLeading()
}
