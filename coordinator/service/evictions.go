package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// Evictions end running units, under notice.
type Evictions interface {
	// PreemptAllocation returns once the notice is durable.
	PreemptAllocation(ctx context.Context, namespace string, p api.PreemptionRequest) (*api.Preemption, error)
	// DrainNode cordons a node and gives notice to every unit that runs there.
	// It may be repeated, to see its progress.
	DrainNode(ctx context.Context, name string, o api.DrainOptions) (*api.Drain, error)
}
