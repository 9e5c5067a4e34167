package coordinator

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
func (c *Coordinator) ClusterUtilization(ctx context.Context) (*api.ClusterUtilization, error) {
	f, err := c.recentFigures(ctx)
	if err != nil {
		return nil, err
	}
	return monitor.Utilization(f), nil
}

// QueueUsage implements service.Metrics.
func (c *Coordinator) QueueUsage(ctx context.Context, reader service.Principal) (*api.QueueUsage, error) {
	f, err := c.recentFigures(ctx)
	if err != nil {
		return nil, err
	}
	return monitor.Queues(f, reader.Tenant, reader.Everywhere(service.Tenants)), nil
}

// TenantUsage implements service.Metrics.
func (c *Coordinator) TenantUsage(ctx context.Context, tenant resource.TenantID, period time.Duration, asked string) (*api.TenantUsage, error) {
	return ask[*api.TenantUsage](ctx, c, lead.TenantUsage{Tenant: tenant, Period: period, Asked: asked})
}
