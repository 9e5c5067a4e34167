package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
)

// ReleaseAllocations implements service.Allocations. It answers once every release
// is durable.
func (c *Coordinator) ReleaseAllocations(ctx context.Context, namespace string, r service.Release) (*api.BulkRelease, error) {
	return ask[*api.BulkRelease](ctx, c, lead.ReleaseAllocations{Namespace: namespace, Names: r.Names, Options: r.Options, DryRun: r.DryRun})
}
