package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// TenantUsage asks for the usage of a tenant over a period. The result is an
// *api.TenantUsage.
type TenantUsage struct {
	Tenant resource.TenantID
	Period time.Duration
	// Asked is the period as the client wrote it.
	Asked string
}

func (r TenantUsage) serve(l *Leader, c *call) {
	o := &api.TenantUsage{Tenant: string(r.Tenant), Period: r.Asked, Resources: map[resource.Name]api.TenantResource{}}
	since := l.now.Add(-r.Period)
	if since.Before(l.elected) {
		since = l.elected
	}
	hard := l.tenantQuota(r.Tenant)
	for name := range hard { // of which nothing may have been used
		unused, zero := tenantResource(name, hard, 0), resource.FormatAmount(name, 0)
		unused.PeakUsage, unused.AvgUsage = zero, zero
		o.Resources[name] = unused
	}
	for name, of := range l.usage.tenants[r.Tenant] {
		shown := tenantResource(name, hard, of.value)
		if of.past != nil {
			past := of.past.Over(l.now, r.Period)
			shown.PeakUsage, shown.AvgUsage = resource.FormatAmount(name, past.Peak), average(name, past.Average)
			if past.Since.Before(since) { // the period begins within a slot
				since = past.Since
			}
		}
		o.Resources[name] = shown
	}
	o.Since = Stamp(since)
	c.answer(o, nil)
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

// tenantQuota is the sum of the tightest hard limits of a tenant's namespaces, of
// the resources that each of them limits. The namespaces of a
// tenant are those with an object, those of the configuration, and those that have
// a resource quota or hold something.
func (l *Leader) tenantQuota(tenant resource.TenantID) resource.Vector {
	tightest := map[string]resource.Vector{} // by namespace
	for _, name := range l.objects.Namespaces.Names() {
		if l.namespace(name).Tenant == tenant {
			tightest[name] = resource.Vector{}
		}
	}
	for name := range l.rules.Namespaces {
		if l.namespace(name).Tenant == tenant {
			tightest[name] = resource.Vector{}
		}
	}
	for name := range l.usage.charged[tenant] {
		tightest[name] = resource.Vector{}
	}
	for _, q := range l.quotas.resources {
		namespace := q.Object.Metadata.Namespace
		if l.namespace(namespace).Tenant != tenant {
			continue
		}
		of := tightest[namespace]
		if of == nil {
			of = resource.Vector{}
			tightest[namespace] = of
		}
		for name, hard := range q.hard {
			if least, limited := of[name]; !limited || hard < least {
				of[name] = hard
			}
		}
	}
	return sumOfAll(tightest)
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
