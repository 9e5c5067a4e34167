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
	trend      shown.Trend
}

// SetResourceQuota takes over a resource quota that is valid.
func (q *Book) SetResourceQuota(object api.ResourceQuota, rev resource.Revision, now time.Time) {
	r := &Quota{Kept: edit.Kept[api.ResourceQuota]{Object: object, Rev: rev}}
	r.hard, r.soft = object.Spec.Limits()
	m := object.Metadata
	if before := q.resources[m.Namespace+"/"+m.Name]; before != nil {
		r.trend = before.trend
	}
	q.resources[m.Namespace+"/"+m.Name] = r
	q.limits.SetLimit(quota.Limit{Group: m.Namespace, Name: m.Name, Hard: r.hard, Soft: r.soft, PerUser: object.Spec.UserLimits(), Scope: &r.Object.Spec})
	r.trend.Note(now, q.utilization(r))
}

// RemoveResourceQuota forgets a resource quota.
func (q *Book) RemoveResourceQuota(namespace, name string) {
	delete(q.resources, namespace+"/"+name)
	q.limits.RemoveLimit(namespace, name)
}

// utilization is what is used of a quota's hard limits, in whole percent.
func (q *Book) utilization(r *Quota) map[resource.Name]int64 {
	return shown.Utilization(q.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name), r.hard)
}

// Sample notes every hour how far the resource quotas are used.
func (q *Book) Sample(now time.Time) {
	if now.Sub(q.sampled) < time.Hour {
		return
	}
	q.sampled = now
	q.usage.forgetIdle(now)
	for _, r := range q.resources {
		r.trend.Note(q.sampled, q.utilization(r))
	}
}

// shown makes the shown value of a quota.
func (q *Book) shown(r *Quota, now time.Time) shown.ResourceQuota {
	percent := q.utilization(r)
	return shown.ResourceQuota{
		Versioned: shown.Versioned[api.ResourceQuota]{Object: r.Object, Revision: r.Rev},
		Hard:      r.hard, Soft: r.soft, Used: q.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name),
		Users:       q.limits.UsedByUsers(r.Object.Metadata.Namespace, r.Object.Metadata.Name),
		Utilization: percent, Trend: r.trend.Since(now, percent),
	}
}

// ShowQuota shows a resource quota with its use.
func (q *Book) ShowQuota(r *Quota, now time.Time) *api.ResourceQuota {
	s := q.shown(r, now)
	return s.Show()
}

// Hard are the hard limits, in base units.
func (r *Quota) Hard() resource.Vector { return r.hard }
