package charges

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// Quota is a resource quota with its limits in base units.
type Quota struct {
	edit.Kept[api.ResourceQuota]
	hard, soft resource.Vector
}

// SetResourceQuota takes over a resource quota that is valid.
func (q *Book) SetResourceQuota(object api.ResourceQuota, rev resource.Revision) {
	r := &Quota{Kept: edit.Kept[api.ResourceQuota]{Object: object, Rev: rev}}
	r.hard, r.soft = object.Spec.Limits()
	m := object.Metadata
	q.resources[m.Namespace+"/"+m.Name] = r
	limit := quota.Limit{Group: m.Namespace, Name: m.Name, Hard: r.hard, Soft: r.soft, PerUser: object.Spec.UserLimits(), Scope: &r.Object.Spec}
	q.limits.SetLimit(limit)
	q.reserved.SetLimit(limit)
}

// RemoveResourceQuota forgets a resource quota.
func (q *Book) RemoveResourceQuota(namespace, name string) {
	delete(q.resources, namespace+"/"+name)
	q.limits.RemoveLimit(namespace, name)
	q.reserved.RemoveLimit(namespace, name)
}

// utilization is what is used of a quota's hard limits, in whole percent.
func (q *Book) utilization(r *Quota) map[resource.Name]int64 {
	return shown.Utilization(q.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name), r.hard)
}

// Sample forgets every hour the use of tenants that have none any more.
func (q *Book) Sample(now time.Time) {
	if now.Sub(q.sampled) < time.Hour {
		return
	}
	q.sampled = now
	q.usage.forgetIdle(now)
}

// shown makes the shown value of a quota.
func (q *Book) shown(r *Quota) shown.ResourceQuota {
	return shown.ResourceQuota{
		Versioned: shown.Versioned[api.ResourceQuota]{Object: r.Object, Revision: r.Rev},
		Hard:      r.hard, Soft: r.soft, Used: q.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name),
		Reserved:    q.reserved.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name),
		Users:       q.limits.UsedByUsers(r.Object.Metadata.Namespace, r.Object.Metadata.Name),
		Utilization: q.utilization(r),
	}
}

// ShowQuota shows a resource quota with its use.
func (q *Book) ShowQuota(r *Quota) *api.ResourceQuota {
	s := q.shown(r)
	return s.Show()
}

// Hard are the hard limits, in base units.
func (r *Quota) Hard() resource.Vector { return r.hard }
