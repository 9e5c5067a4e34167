package gate

import (
	"cmp"

	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// owner is a caller as bounds and queues count callers: a user of a tenant. Every
// user of a tenant has a share of the tenant's part, and a tenant has no larger part
// for having many users.
type owner struct {
	tenant resource.TenantID
	user   string
}

// ownerOf is the owner of the requests of a principal.
func ownerOf(p service.Principal) owner {
	return owner{tenant: p.Tenant, user: cmp.Or(p.Name, p.Token)}
}

// group is the tenant of an owner; an owner without a tenant is a group alone.
func (o owner) group() owner {
	if o.tenant != "" {
		return owner{tenant: o.tenant}
	}
	return o
}

// String is "user ada of tenant vision".
func (o owner) String() string {
	switch {
	case o == (owner{}):
		return "hosts that join"
	case o.tenant == "":
		return "user " + o.user
	case o.user == "":
		return "tenant " + string(o.tenant)
	}
	return "user " + o.user + " of tenant " + string(o.tenant)
}

// isSystem reports whether a caller is apart from the tenants: an administrator.
func isSystem(p service.Principal) bool { return p.Everywhere(service.Admins) }
