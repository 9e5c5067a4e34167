package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/post"
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

func (r TenantUsage) serve(l *Leader, c *desk.Call) {
	o := &api.TenantUsage{Tenant: string(r.Tenant), Period: r.Asked, Resources: map[resource.Name]api.TenantResource{}}
	since := l.post.Now().Add(-r.Period)
	if since.Before(l.post.Elected()) {
		since = l.post.Elected()
	}
	o.Since = post.Stamp(l.quotas.ShowUsage(o, r.Tenant, l.tenantQuota(r.Tenant), since, l.post.Now(), r.Period))
	c.Answer(o, nil)
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
	return l.quotas.Tightest(tightest, tenant, func(namespace string) resource.TenantID { return l.namespace(namespace).Tenant })
}
