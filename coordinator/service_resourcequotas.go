package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
)

var _ service.Quotas = (*Coordinator)(nil)

// CreateResourceQuota implements service.Quotas.
func (c *Coordinator) CreateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return c.putResourceQuota(ctx, q, true)
}

// UpdateResourceQuota implements service.Quotas. A limit that is lowered below
// the usage refuses newcomers and ends nobody.
func (c *Coordinator) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return c.putResourceQuota(ctx, q, false)
}

func (c *Coordinator) putResourceQuota(ctx context.Context, q *api.ResourceQuota, create bool) (*api.ResourceQuota, error) {
	if status := q.Validate(); status != nil {
		return nil, status
	}
	got, err := ask[lead.Warned[*api.ResourceQuota]](ctx, c, lead.PutResourceQuota{Object: q, Create: create, AllowUnknown: service.AllowsUnknownResources(ctx)})
	warn(ctx, got.Warnings)
	return got.Object, err
}

// DeleteResourceQuota implements service.Quotas.
func (c *Coordinator) DeleteResourceQuota(ctx context.Context, namespace, name string, require api.Preconditions) (*api.ResourceQuota, error) {
	return ask[*api.ResourceQuota](ctx, c, lead.DeleteResourceQuota{Namespace: namespace, Name: name, Require: require})
}

// GetResourceQuota implements service.Quotas.
func (c *Coordinator) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	return look(ctx, c, func(i *objects.View) (*api.ResourceQuota, *api.Status) {
		q, found := i.ResourceQuota(namespace + "/" + name)
		if !found {
			return nil, lead.NoResourceQuota(namespace, name)
		}
		return q.Show(), nil
	})
}

// ListResourceQuotas implements service.Quotas.
func (c *Coordinator) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	return look(ctx, c, func(i *objects.View) (*api.ResourceQuotaList, *api.Status) {
		return shown.ListResourceQuotas(i.Floor(), i.ResourceQuotas(namespace)), nil
	})
}
