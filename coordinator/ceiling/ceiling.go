// Package ceiling decides who may submit work of a priority: the ceiling of the
// namespace, that of the caller's roles in it, and that of the caller's token. A
// priority by a class counts as its number.
package ceiling

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// OfTenants is the ceiling of the roles of tenants where a namespace sets no ceiling: the
// class high-priority. Work above it, such as system-critical, is for roles in the whole
// cluster until an operator says otherwise.
const OfTenants int32 = 1000

// Rules are the ceilings of a namespace. With nil for All, each role of a tenant that has no
// ceiling in Roles has the ceiling OfTenants.
type Rules struct {
	Namespace string
	Owner     resource.TenantID
	All       *int32
	// Roles are the ceilings by role.
	Roles map[string]int32
}

// Caller is the sender of a request. The zero value has the ceiling of the namespace
// alone, as has a part of the cluster.
type Caller struct {
	// Grants are the roles of the caller that may submit work.
	Grants []Grant
	// Token is the ceiling of the access token; nil for none.
	Token *int32
}

// Grant is a role, and the place where the role counts: all namespaces of a tenant, or
// the named ones as long as they belong to it. Without a tenant it is the whole cluster.
type Grant struct {
	Role       string
	Tenant     resource.TenantID
	Namespaces []string
}

// grantsIn are the roles that count in a namespace of an owner, by name.
func (c Caller) grantsIn(namespace string, owner resource.TenantID) []Grant {
	var in []Grant
	for _, g := range c.Grants {
		if g.Tenant == "" || g.Tenant == owner && (len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, namespace)) {
			in = append(in, g)
		}
	}
	slices.SortStableFunc(in, func(a, b Grant) int { return cmp.Compare(a.Role, b.Role) })
	return in
}

// Refuse returns the 403 of new work whose priority is above a ceiling, nil for all
// other work. A caller of several roles has the ceiling of the role that may do most.
func Refuse(r Rules, c Caller, priority int32) *api.Status {
	if r.All != nil && priority > *r.All {
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of namespace %s: ask for %d or less, or ask an admin to raise spec.priorityCeiling",
			priority, *r.All, r.Namespace, *r.All)
	}
	switch role, most, bound := r.highest(c.grantsIn(r.Namespace, r.Owner)); {
	case !bound || priority <= most:
	case role == "":
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of tenants in namespace %s, which sets none: ask for %d or less, or ask an admin to set spec.priorityCeiling of the namespace",
			priority, most, r.Namespace, most)
	default:
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of the role %s in namespace %s: ask for %d or less, or ask an admin to raise spec.roleCeilings.%s",
			priority, most, role, r.Namespace, most, role)
	}
	if c.Token != nil && priority > *c.Token {
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of the token: ask for %d or less, or use a token with a higher ceiling", priority, *c.Token, *c.Token)
	}
	return nil
}

// highest is the greatest ceiling of the roles, and the role that has it, "" for the ceiling
// OfTenants; bound is false where a role has none, or there is no role.
func (r Rules) highest(grants []Grant) (role string, most int32, bound bool) {
	for _, g := range grants {
		name := g.Role
		of, found := r.Roles[name]
		switch {
		case !found && (r.All != nil || g.Tenant == ""):
			return "", 0, false
		case !found:
			name, of = "", OfTenants
		}
		if !bound || of > most {
			role, most, bound = name, of, true
		}
	}
	return role, most, bound
}
