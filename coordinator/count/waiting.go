package count

import (
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Shares are the bounds of a tenant over all namespaces.
type Shares struct {
	Documents Share
	Waiting   Waiting
}

// Refuse returns the 429 of a request which adds more than a tenant's shares leave, nil for
// all other requests. all is the use of all tenants, and of returns the use of a tenant.
func (s Shares) Refuse(tenant resource.TenantID, of func(resource.TenantID) Use, all, more Use) *api.Status {
	if s.Documents.IsFar(all.Documents, more.Documents) && s.Waiting.IsFar(all, more) {
		return nil
	}
	own := of(tenant)
	return cmp.Or(s.Waiting.Refuse(string(tenant), own, more), s.Documents.Refuse(string(tenant), own.Documents, all.Documents, more.Documents))
}

// Waiting bounds the waiting units of a tenant in all namespaces together: a tenant with many
// namespaces has as much of the leader's memory and passes as a tenant with a single namespace.
type Waiting int64

// WaitingOf is the bound for a namespace with own limits, which may be nil: the greatest
// number of allocations of a namespace in the configuration, or greater own limits.
func WaitingOf(own *api.NamespaceCounts, configured int) Waiting {
	most := int64(configured)
	if own != nil {
		most = max(most, *cmp.Or(own.Allocations, new(int64)), *cmp.Or(own.WaitingUnits, new(int64)))
	}
	return Waiting(most)
}

// IsFar reports whether more units of any tenant may wait.
func (w Waiting) IsFar(all, more Use) bool {
	return more.Waiting <= 0 || all.Waiting+more.Waiting <= int64(w)
}

// Refuse returns the 429 of a request which adds more waiting units than a tenant may have;
// nil for all other requests.
func (w Waiting) Refuse(tenant string, used, more Use) *api.Status {
	if more.Waiting <= 0 || used.Waiting+more.Waiting <= int64(w) {
		return nil
	}
	return api.Errorf(429, "tenant %s has %d units that wait in all of its namespaces and may have %d: there is no room for %d more; ask again when some have started, or ask an operator to raise limits.allocationsPerNamespace",
		tenant, used.Waiting, int64(w), more.Waiting).Because(api.TooManyObjects)
}
