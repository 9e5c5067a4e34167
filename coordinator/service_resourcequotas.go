package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
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
			object.Metadata = l.own(q.Metadata, nil)
		} else {
			object.Metadata, w.rev = l.own(q.Metadata, &before.object.Metadata), before.rev
		}
		w.uid = object.Metadata.UID
		w.op = record.Put(resourceQuotaKey(namespace, name).Key(), record.MustEncode(*recordOf(object.Metadata, object)))
		w.landed = func(rev resource.Revision) {
			object.Metadata = at(object.Metadata, rev)
			l.quotas.setResourceQuota(object, rev, l.now)
		}
		return w, nil
	}
	return changeQuotas(ctx, c, judge, func(l *leader) *api.ResourceQuota {
		return l.resourceQuotaObject(l.quotas.resources[namespace+"/"+name])
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
		was = l.resourceQuotaObject(q)
		return quotaWrite{
			op: record.Delete(resourceQuotaKey(namespace, name).Key()), rev: q.rev,
			landed: func(resource.Revision) { l.quotas.removeResourceQuota(namespace, name) },
		}, nil
	}
	return changeQuotas(ctx, c, judge, func(*leader) *api.ResourceQuota { return was })
}

// GetResourceQuota implements rest.Quotas.
func (c *Coordinator) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	return see(ctx, c, func(v *view) (*api.ResourceQuota, *api.Status) {
		q, status := v.resourceQuota(namespace, name)
		if status != nil {
			return nil, status
		}
		return v.resourceQuotaObject(q), nil
	})
}

// ListResourceQuotas implements rest.Quotas.
func (c *Coordinator) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	return see(ctx, c, func(v *view) (*api.ResourceQuotaList, *api.Status) {
		list := &api.ResourceQuotaList{Kind: "ResourceQuotaList", Items: []api.ResourceQuota{}}
		newest := v.floor
		for _, q := range v.quotas.resources {
			if namespace == "" || q.object.Metadata.Namespace == namespace {
				list.Items = append(list.Items, *v.resourceQuotaObject(q))
				newest = max(newest, q.rev)
			}
		}
		slices.SortFunc(list.Items, func(a, b api.ResourceQuota) int { return byName(a.Metadata, b.Metadata) })
		list.Metadata.ResourceVersion = at(api.ObjectMeta{}, newest).ResourceVersion
		return list, nil
	})
}

func (v *view) resourceQuota(namespace, name string) (*resourceQuota, *api.Status) {
	if q := v.quotas.resources[namespace+"/"+name]; q != nil {
		return q, nil
	}
	return nil, api.Errorf(404, "resource quota %s not found in namespace %s", name, namespace)
}

// resourceQuotaObject shows a quota with what is used of it. The limits of
// resources that are not handed out have no status.
func (v *view) resourceQuotaObject(q *resourceQuota) *api.ResourceQuota {
	o := q.object
	used := v.quotas.limits.Used(o.Metadata.Namespace, o.Metadata.Name)
	percent := v.quotas.utilization(q)
	o.Status = api.ResourceQuotaStatus{
		Hard: quantities(q.hard), Used: quantities(used), Utilization: map[resource.Name]string{}, Trend: q.trend.since(time.Now(), percent),
	}
	for name, p := range percent {
		o.Status.Utilization[name] = fmt.Sprintf("%d%%", p)
	}
	for _, about := range []struct {
		condition, reason, message string
		limit                      resource.Vector
	}{
		{"SoftExceeded", "AboveSoftLimit", "above the soft limit", q.soft},
		{"OverLimit", "AboveHardLimit", "above the hard limit: nothing new is admitted, nothing that runs is ended", q.hard},
	} {
		if over := exceeded(used, about.limit); len(over) > 0 {
			o.Status.Conditions = append(o.Status.Conditions, api.Condition{
				Type: about.condition, Status: "True", Reason: about.reason, Message: about.message + ": " + amountsOver(over, used, about.limit),
			})
		}
	}
	return &o
}

// amountsOver lists e.g. "cpu 12 of 10, memory 3Gi of 2Gi".
func amountsOver(over []resource.Name, used, limit resource.Vector) string {
	parts := make([]string, len(over))
	for i, name := range over {
		parts[i] = fmt.Sprintf("%s %s of %s", name, resource.FormatAmount(name, used[name]), resource.FormatAmount(name, limit[name]))
	}
	return strings.Join(parts, ", ")
}

// quantities prints every amount of a vector, zeros too.
func quantities(v resource.Vector) map[resource.Name]string {
	out := make(map[resource.Name]string, len(v))
	for name, amount := range v {
		out[name] = resource.FormatAmount(name, amount)
	}
	return out
}
