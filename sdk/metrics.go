package sdk

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/musterd/muster/api"
)

// Metrics are the cluster, its queues and its tenants in numbers.
type Metrics struct{ client *Client }

// Metrics selects the numbers.
func (c *Client) Metrics() Metrics { return Metrics{c} }

// Cluster returns the hardware of the cluster, its use and the work of the leader.
func (m Metrics) Cluster(ctx context.Context) (*api.ClusterUtilization, error) {
	return call[api.ClusterUtilization](ctx, m.client, request{method: http.MethodGet, path: "/api/v1/metrics/cluster/utilization"})
}

// Queues returns the queues with their depths and waits; to a tenant those in which
// its own work waits.
func (m Metrics) Queues(ctx context.Context) (*api.QueueUsage, error) {
	return call[api.QueueUsage](ctx, m.client, request{method: http.MethodGet, path: "/api/v1/metrics/queues"})
}

// Tenant returns the usage of a tenant over a period of at most 366 days; 0 is 24 h.
func (m Metrics) Tenant(ctx context.Context, name string, period time.Duration) (*api.TenantUsage, error) {
	r := request{method: http.MethodGet, path: "/api/v1/metrics/tenants/" + url.PathEscape(name) + "/usage"}
	if period != 0 {
		r.query = url.Values{"period": {period.String()}}
	}
	return call[api.TenantUsage](ctx, m.client, r)
}
