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
