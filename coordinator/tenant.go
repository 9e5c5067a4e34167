package coordinator

import (
	"cmp"

	"github.com/musterd/muster/resource"
)

// TenantOf is the tenant that owns a namespace: that of the configuration, and
// for any other namespace the tenant that bears its name.
func (c *Coordinator) TenantOf(namespace string) resource.TenantID {
	return cmp.Or(c.config.Namespaces[namespace].Tenant, resource.TenantID(namespace))
}
