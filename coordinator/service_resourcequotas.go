package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
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
	return c.putResourceQuota(ctx, q, func(l *leader) (*resourceQuota, *api.Status) {
		if l.quotas.resources[q.Metadata.Namespace+"/"+q.Metadata.Name] != nil {
			return nil, api.Errorf(409, "%s already exists", resourceQuotaName(q.Metadata.Namespace, q.Metadata.Name))
		}
		return nil, nil
	})
}

// UpdateResourceQuota implements rest.Quotas. A limit that is lowered below
// the usage refuses newcomers and ends nobody.
func (c *Coordinator) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return c.putResourceQuota(ctx, q, func(l *leader) (*resourceQuota, *api.Status) {
		before, status := l.resourceQuota(q.Metadata.Namespace, q.Metadata.Name)
		if status != nil {
			return nil, status
		}
		return before, checkVersion(resourceQuotaName(q.Metadata.Namespace, q.Metadata.Name), q.Metadata.ResourceVersion, before.rev)
	})
}

// putResourceQuota writes a quota in place of the one that find returns, nil
// for none.
func (c *Coordinator) putResourceQuota(ctx context.Context, q *api.ResourceQuota, find func(l *leader) (*resourceQuota, *api.Status)) (*api.ResourceQuota, error) {
	if status := q.Validate(); status != nil {
		return nil, status
	}
	namespace, name := q.Metadata.Namespace, q.Metadata.Name
	judge := func(l *leader) (quotaWrite, *api.Status) {
		if status := notConfigured(namespace, name); status != nil {
			return quotaWrite{}, status
		}
		before, status := find(l)
		if status != nil {
			return quotaWrite{}, status
		}
		object := api.ResourceQuota{APIVersion: api.APIVersion, Kind: api.KindResourceQuota, Spec: q.Spec}
		var w quotaWrite
		if before == nil {
			object.Metadata = own(q.Metadata, nil)
		} else {
			object.Metadata, w.rev = own(q.Metadata, &before.object.Metadata), before.rev
		}
		w.uid = object.Metadata.UID
		w.op = record.Put(resourceQuotaKey(namespace, name).Key(), record.MustEncode(*recordOf(object.Metadata, object)))
		w.landed = func(rev resource.Revision) {
			object.Metadata = at(object.Metadata, rev)
			l.quotas.setResourceQuota(object, rev)
		}
		return w, nil
	}
	return changeQuotas(ctx, c, judge, func(l *leader) *api.ResourceQuota {
		return l.resourceQuotaObject(l.quotas.resources[namespace+"/"+name], time.Now())
	})
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
	var was *api.ResourceQuota
	judge := func(l *leader) (quotaWrite, *api.Status) {
		q, status := l.resourceQuota(namespace, name)
		if status == nil {
			status = notConfigured(namespace, name)
		}
		if status != nil {
			return quotaWrite{}, status
		}
		was = l.resourceQuotaObject(q, time.Now())
		return quotaWrite{
			op: record.Delete(resourceQuotaKey(namespace, name).Key()), rev: q.rev,
			landed: func(resource.Revision) { l.quotas.removeResourceQuota(namespace, name) },
		}, nil
	}
	return changeQuotas(ctx, c, judge, func(*leader) *api.ResourceQuota { return was })
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
