// Package ceiling decides who may submit work of a priority: the ceiling of the
// namespace, that of the caller's roles in it, and that of the caller's token. A
// priority by a class counts as its number.
package ceiling

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Rules are the ceilings of a namespace. nil is no ceiling.
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

// rolesIn are the roles that count in a namespace of an owner, by name.
func (c Caller) rolesIn(namespace string, owner resource.TenantID) []string {
	var roles []string
	for _, g := range c.Grants {
		if g.Tenant == "" || g.Tenant == owner && (len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, namespace)) {
			roles = append(roles, g.Role)
		}
	}
	slices.Sort(roles)
	return roles
}

// Refuse returns the 403 of new work whose priority is above a ceiling, nil for all
// other work. A caller of several roles has the ceiling of the role that may do most.
func Refuse(r Rules, c Caller, priority int32) *api.Status {
	if r.All != nil && priority > *r.All {
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of namespace %s: ask for %d or less, or ask an operator to raise spec.priorityCeiling",
			priority, *r.All, r.Namespace, *r.All)
	}
	if role, most, bound := highest(r.Roles, c.rolesIn(r.Namespace, r.Owner)); bound && priority > most {
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of the role %s in namespace %s: ask for %d or less, or ask an operator to raise spec.roleCeilings.%s",
			priority, most, role, r.Namespace, most, role)
	}
	if c.Token != nil && priority > *c.Token {
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of the token: ask for %d or less, or use a token with a higher ceiling", priority, *c.Token, *c.Token)
	}
	return nil
}

// highest is the role with the greatest ceiling; bound is false where a role of the
// caller has none, or the caller has no role.
func highest(ceilings map[string]int32, roles []string) (role string, most int32, bound bool) {
	for _, r := range roles {
		of, found := ceilings[r]
		if !found {
			return "", 0, false
		}
		if !bound || of > most {
			role, most, bound = r, of, true
		}
	}
	return role, most, bound
}
