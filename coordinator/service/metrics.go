package service

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Metrics are the cluster, its queues and its tenants in numbers. The leader
// answers all of them.
type Metrics interface {
	// ClusterUtilization is the whole cluster, in numbers at most 1 s old.
	ClusterUtilization(ctx context.Context) (*api.ClusterUtilization, error)
	// QueueUsage is all queues for an admin; for any other reader the queues in which
	// work of the reader's tenant waits, and that work alone.
	QueueUsage(ctx context.Context, reader Principal) (*api.QueueUsage, error)
	// TenantUsage is the usage of a tenant over a period; asked is the period as the
	// client wrote it.
	TenantUsage(ctx context.Context, tenant resource.TenantID, period time.Duration, asked string) (*api.TenantUsage, error)
}

// AuthorizeTenant returns the 404 for a principal that asks about a tenant in which
// it has no role, nil for any other principal: nobody learns which tenants there are.
func (Access) AuthorizeTenant(ctx context.Context, p Principal, tenant resource.TenantID) *api.Status {
	if p.hasIn(tenant, Tenants, nil) {
		return nil
	}
	Hidden(ctx)
	return notThere(KindTenants, string(tenant), "")
}
