package service

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/ceiling"
)

// CeilingsOf is the caller of a request as far as ceilings of priorities depend on the
// caller; false where they do not. The roles that count are those that may send the
// request: editors submit and change work, enders may boost it too.
func CeilingsOf(ctx context.Context, boost bool) (ceiling.Caller, bool) {
	roles := Editors
	if boost {
		roles = Enders
	}
	by, found := ctx.Value(callerKey{}).(*Caller)
	if !found {
		return ceiling.Caller{}, false
	}
	c := ceiling.Caller{Token: by.Ceiling}
	for g := range by.everyGrant {
		if roles.Has(g.Role) {
			c.Grants = append(c.Grants, ceiling.Grant{Role: g.Role.String(), Tenant: g.Tenant, Namespaces: g.Namespaces})
		}
	}
	return c, c.Token != nil || len(c.Grants) > 0
}

// CheckPriority returns the 403 of work whose priority is above the ceiling of the
// caller's token, nil for all other work. number and class are those of the document,
// which was checked before. The leader checks the ceilings of the namespace, and all
// ceilings where a change adds work.
func (p Principal) CheckPriority(number *int32, class string) *api.Status {
	if p.Ceiling == nil {
		return nil
	}
	if _, builtIn := api.BuiltInPriority(class); number == nil && class != "" && !builtIn {
		return nil // the leader knows the value
	}
	return ceiling.Refuse(ceiling.Rules{}, ceiling.Caller{Token: p.Ceiling}, api.PriorityOf(number, class))
}

// BoostJob implements Jobs. A boost moves the waiting members of the job.
func (s sighted) BoostJob(ctx context.Context, namespace, name string, o api.BoostOptions) (*api.Boost, error) {
	units := members(ctx, s.Service, namespace, name)
	return charged(ctx, s.charger, units, 0, func() (*api.Boost, error) { return s.Service.BoostJob(ctx, namespace, name, o) })
}
