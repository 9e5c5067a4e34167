package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
)

// CreateResourceQuota implements service.Quotas.
func (c *Cluster) CreateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return c.putResourceQuota(ctx, q, true)
}

// UpdateResourceQuota implements service.Quotas. A limit that is lowered below
// the usage refuses newcomers and ends nobody.
func (c *Cluster) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return c.putResourceQuota(ctx, q, false)
}

func (c *Cluster) putResourceQuota(ctx context.Context, q *api.ResourceQuota, create bool) (*api.ResourceQuota, error) {
	if status := q.Validate(); status != nil {
		return nil, status
	}
	got, err := ask[lead.Warned[*api.ResourceQuota]](ctx, c, lead.PutResourceQuota{Object: q, Create: create, AllowUnknown: service.AllowsUnknownResources(ctx)})
	warn(ctx, got.Warnings)
	return got.Object, err
}

// DeleteResourceQuota implements service.Quotas.
func (c *Cluster) DeleteResourceQuota(ctx context.Context, namespace, name string, require api.Preconditions) (*api.ResourceQuota, error) {
	return ask[*api.ResourceQuota](ctx, c, lead.DeleteResourceQuota{Namespace: namespace, Name: name, Require: require})
}

// GetResourceQuota implements service.Quotas.
func (c *Cluster) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	return see(ctx, c, func(v *objects.View) (*api.ResourceQuota, *api.Status) {
		q, found := v.ResourceQuota(namespace + "/" + name)
		if !found {
			return nil, lead.NoResourceQuota(namespace, name)
		}
		return q.Show(), nil
	})
}

// ListResourceQuotas implements service.Quotas.
func (c *Cluster) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	return see(ctx, c, func(v *objects.View) (*api.ResourceQuotaList, *api.Status) {
		return shown.ListResourceQuotas(v.Floor(), v.ResourceQuotas(namespace)), nil
	})
}
