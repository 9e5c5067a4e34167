package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// KindSnapshot is the scheduling state of the whole cluster.
const KindSnapshot Kind = "snapshot"

// Snapshots exports the scheduling state.
type Snapshots interface {
	// TakeSnapshot is the state now. It reads all keys of nodes, quotas and work, which
	// takes seconds in a large cluster.
	TakeSnapshot(ctx context.Context) (*api.ClusterSnapshot, error)
}
