package coordinator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
)

// TakeSnapshot implements service.Snapshots. The leader's loop gives its own part; the
// keys are read from the store afterwards, at one revision.
func (c *Coordinator) TakeSnapshot(ctx context.Context) (*api.ClusterSnapshot, error) {
	state, err := ask[*lead.Captured](ctx, c, lead.CaptureState{})
	if err != nil {
		return nil, err
	}
	read := &reader{store: c.store}
	var keys []record.KV
	for _, prefix := range capture.Prefixes() {
		keys = append(keys, read.prefix(ctx, prefix)...)
	}
	if read.err != nil {
		return nil, api.Errorf(http.StatusServiceUnavailable, "the snapshot: the store did not answer: %v; ask again", read.err)
	}
	d, err := capture.New(c.config.Cluster, state, read.revision, keys)
	if err != nil {
		return nil, fmt.Errorf("the snapshot: %w", err)
	}
	return ShowSnapshot(d)
}

// ShowSnapshot is a snapshot as the API shows it.
func ShowSnapshot(d *capture.Document) (*api.ClusterSnapshot, error) {
	text, err := d.Encode()
	if err != nil {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "the snapshot: %v", err)
	}
	s := &api.ClusterSnapshot{
		Kind: "ClusterSnapshot", Revision: int64(d.Revision), TakenAt: d.TakenAt.Format(time.RFC3339), Nodes: len(d.Nodes), Undecided: d.Undecided, Document: string(text),
	}
	for _, k := range d.Keys {
		if strings.HasPrefix(k.Key, record.UnitsPrefix) {
			s.Units++
		}
	}
	return s, nil
}
