package coordinator

import (
	"context"
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/shown"
)

var _ rest.Quotas = (*Coordinator)(nil)

func resourceQuotaKey(namespace, name string) record.QuotaKey {
	return record.QuotaKey{Kind: record.QuotaResources, Namespace: namespace, Name: name}
}

func resourceQuotaName(namespace, name string) string {
	return fmt.Sprintf("resource quota %s of namespace %s", name, namespace)
}

// CreateResourceQuota implements rest.Quotas.
func (c *Coordinator) CreateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return c.putResourceQuota(ctx, q, true)
}

// UpdateResourceQuota implements rest.Quotas. A limit that is lowered below
// the usage refuses newcomers and ends nobody.
func (c *Coordinator) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return c.putResourceQuota(ctx, q, false)
}

func (c *Coordinator) putResourceQuota(ctx context.Context, q *api.ResourceQuota, create bool) (*api.ResourceQuota, error) {
	if status := q.Validate(); status != nil {
		return nil, status
	}
	return ask[*api.ResourceQuota](ctx, c, putResourceQuota{q, create})
}

// notConfigured refuses to change what the coordinators' configuration says.
func notConfigured(namespace, name string) *api.Status {
	if name == configQuota {
		return api.Errorf(409, "%s is set by the coordinators' configuration: change it there, or make another quota beside it", resourceQuotaName(namespace, name))
	}
	return nil
}

// DeleteResourceQuota implements rest.Quotas.
func (c *Coordinator) DeleteResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	return ask[*api.ResourceQuota](ctx, c, deleteResourceQuota{namespace, name})
}

// GetResourceQuota implements rest.Quotas.
func (c *Coordinator) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	return see(ctx, c, func(i shown.Index) (*api.ResourceQuota, *api.Status) {
		q, found := i.ResourceQuota(namespace + "/" + name)
		if !found {
			return nil, noResourceQuota(namespace, name)
		}
		return q.Show(), nil
	})
}

// ListResourceQuotas implements rest.Quotas.
func (c *Coordinator) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	return see(ctx, c, func(i shown.Index) (*api.ResourceQuotaList, *api.Status) {
		return shown.ListResourceQuotas(i.Floor(), i.ResourceQuotas(namespace)), nil
	})
}

func (l *leader) resourceQuota(namespace, name string) (*resourceQuota, *api.Status) {
	if q := l.quotas.resources[namespace+"/"+name]; q != nil {
		return q, nil
	}
	return nil, noResourceQuota(namespace, name)
}

func noResourceQuota(namespace, name string) *api.Status {
	return api.Errorf(404, "resource quota %s not found in namespace %s", name, namespace)
}
