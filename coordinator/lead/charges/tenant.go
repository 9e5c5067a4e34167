package charges

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// ShowUsage adds a tenant's use of each resource over a period that ends now, beside its
// limits. It returns the instant from which the numbers count: since, or earlier, where the
// period begins within a slot of the history.
func (q *Book) ShowUsage(o *api.TenantUsage, tenant resource.TenantID, hard resource.Vector, since, now time.Time, period time.Duration) time.Time {
	for name := range hard { // of which nothing may have been used
		unused, zero := tenantResource(name, hard, 0), resource.FormatAmount(name, 0)
		unused.PeakUsage, unused.AvgUsage = zero, zero
		o.Resources[name] = unused
	}
	for name, of := range q.usage.tenants[tenant] {
		shown := tenantResource(name, hard, of.value)
		if of.past != nil {
			past := of.past.Over(now, period)
			shown.PeakUsage, shown.AvgUsage = resource.FormatAmount(name, past.Peak), average(name, past.Average)
			if past.Since.Before(since) { // the period begins within a slot
				since = past.Since
			}
		}
		o.Resources[name] = shown
	}
	return since
}

// tenantResource shows a usage beside the quota, where the tenant has one.
func tenantResource(name resource.Name, hard resource.Vector, used int64) api.TenantResource {
	o := api.TenantResource{CurrentUsage: resource.FormatAmount(name, used)}
	limit, limited := hard[name]
	if !limited {
		return o
	}
	o.Quota = resource.FormatAmount(name, limit)
	if limit > 0 {
		part := api.Ratio(float64(used), float64(limit))
		o.UtilizationOfQuota = &part
	}
	return o
}

// average shows an average; that of memory in whole MiB, where it is that much.
func average(name resource.Name, amount int64) string {
	const mebi = 1 << 20
	if name == resource.Memory && amount >= mebi {
		amount = (amount + mebi/2) / mebi * mebi
	}
	return resource.FormatAmount(name, amount)
}

// Tightest is the sum over namespaces of a tenant of the tightest hard limits, of the
// resources that each of them limits. of has some of the namespaces; those that have a
// resource quota or hold something are added.
func (q *Book) Tightest(of map[string]resource.Vector, tenant resource.TenantID, owner func(namespace string) resource.TenantID) resource.Vector {
	for name := range q.usage.charged[tenant] {
		of[name] = resource.Vector{}
	}
	for _, r := range q.resources {
		namespace := r.Object.Metadata.Namespace
		if owner(namespace) != tenant {
			continue
		}
		least := of[namespace]
		if least == nil {
			least = resource.Vector{}
			of[namespace] = least
		}
		for name, hard := range r.hard {
			if now, limited := least[name]; !limited || hard < now {
				least[name] = hard
			}
		}
	}
	return sumOfAll(of)
}

// sumOfAll adds up the amounts that all vectors have.
func sumOfAll(vectors map[string]resource.Vector) resource.Vector {
	sum, have := resource.Vector{}, map[resource.Name]int{}
	for _, v := range vectors {
		for name, amount := range v {
			sum[name] = resource.SaturatingAdd(sum[name], amount)
			have[name]++
		}
	}
	for name, n := range have {
		if n < len(vectors) {
			delete(sum, name)
		}
	}
	return sum
}
