package sdk

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
)

// Snapshot is the scheduling state of the cluster now, for muster simulate. It wants the
// role operator.
func (c *Client) Snapshot(ctx context.Context) (*api.ClusterSnapshot, error) {
	return call[api.ClusterSnapshot](ctx, c, request{method: http.MethodGet, path: "/api/v1/snapshot"})
}
