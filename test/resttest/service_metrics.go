package resttest

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/monitor"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// ClusterUtilization implements service.Metrics.
func (c *Cluster) ClusterUtilization(context.Context) (*api.ClusterUtilization, error) {
	return monitor.Utilization(c.Figures()), nil
}

// QueueUsage implements service.Metrics.
func (c *Cluster) QueueUsage(_ context.Context, reader service.Principal) (*api.QueueUsage, error) {
	return monitor.Queues(c.Figures(), reader.Tenant, reader.Everywhere(service.Tenants)), nil
}

// TenantUsage implements service.Metrics.
func (c *Cluster) TenantUsage(ctx context.Context, tenant resource.TenantID, period time.Duration, asked string) (*api.TenantUsage, error) {
	return ask[*api.TenantUsage](ctx, c, lead.TenantUsage{Tenant: tenant, Period: period, Asked: asked})
}
