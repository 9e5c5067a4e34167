package coordinator

import (
	"cmp"

	"github.com/musterd/muster/resource"
)

// TenantOf is the tenant that owns a namespace: that of its object, and without one
// the tenant of its name. Until the namespaces of the configuration are objects, the
// configuration counts. The answer is as new as this coordinator's cache.
func (c *Coordinator) TenantOf(namespace string) resource.TenantID {
	tenant, found, configured := c.follower.Owner(namespace)
	switch {
	case found:
		return tenant
	case !configured:
		return cmp.Or(c.config.Namespaces[namespace].Tenant, resource.TenantID(namespace))
	}
	return resource.TenantID(namespace)
}

// Live is the number of coordinators that are live, itself included; 0 while that is
// unknown.
func (c *Coordinator) Live() int { return c.follower.Live() }

// RequestsPerMinute is the tenant's own limit of requests; 0 for a tenant without
// one. The answer is as new as this coordinator's cache.
func (c *Coordinator) RequestsPerMinute(tenant resource.TenantID) int {
	return c.follower.RequestsPerMinute(tenant)
}
