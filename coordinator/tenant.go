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
