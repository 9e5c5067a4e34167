package service

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// Role is a named set of rights, as api.Roles lists them. A principal has roles by
// its grants.
type Role uint8

// The roles. Each comment is the purpose of the role in one line; the table of rights
// (authorize.go) has the exact rights.
const (
	Viewer      Role = 1 << iota // reads
	Editor                       // reads, and submits, changes and ends work
	TenantAdmin                  // an editor who gives the rights of the tenant to others
	Operator                     // runs the machines: nodes, evictions, bootstrap tokens
	Admin                        // everything
	Node                         // a host that joins, by its bootstrap token or its certificate
)

// roleNames are the roles in the order in which people read them.
var roleNames = []struct {
	role Role
	name string
}{{Viewer, "viewer"}, {Editor, "editor"}, {TenantAdmin, "tenant-admin"}, {Operator, "operator"}, {Admin, "admin"}, {Node, "node"}}

// String names a role as documents do.
func (r Role) String() string {
	for _, n := range roleNames {
		if n.role == r {
			return n.name
		}
	}
	return "nobody"
}

// RoleNamed finds a role by its name.
func RoleNamed(name string) (Role, bool) {
	for _, n := range roleNames {
		if n.name == name {
			return n.role, true
		}
	}
	return 0, false
}

// Roles is a set of roles.
type Roles uint8

// The sets that the table of rights is made of. anyone is no set of roles: the
// request needs no token.
const (
	Nobody Roles = 0
	Anyone Roles = 1 << 7
	// Known are all callers who have proven their name, those without a role too.
	Known = Roles(1<<6) | Tenants
	// Tenants read: every role but node.
	Tenants = Roles(Viewer | Editor | TenantAdmin | Operator | Admin)
	// Editors change the work of a tenant.
	Editors = Roles(Editor | TenantAdmin | Admin)
	// Enders end work: operators do so to free a node.
	Enders = Editors | Roles(Operator)
	// TenantAdmins give rights to others.
	TenantAdmins = Roles(TenantAdmin | Admin)
	// Operators run the machines.
	Operators = Roles(Operator | Admin)
	Admins    = Roles(Admin)
)

// Has reports whether a role is in the set.
func (s Roles) Has(r Role) bool { return s&Roles(r) != 0 }

// Names are the roles of the set, in the order in which people read them.
func (s Roles) Names() []string {
	var names []string
	for _, n := range roleNames {
		if s.Has(n.role) {
			names = append(names, n.name)
		}
	}
	return names
}

// String names the role of the set with the fewest rights, as the reference of the
// API does.
func (s Roles) String() string {
	switch {
	case s == Anyone:
		return "anyone"
	case s == Known:
		return "any token"
	case len(s.Names()) == 0:
		return "nobody"
	}
	return s.Names()[0]
}

// Grant is one role of a principal, and the place where the role counts.
type Grant struct {
	Role Role
	// Tenant is the tenant whose namespaces the role counts in; "" is the whole
	// cluster.
	Tenant resource.TenantID
	// Namespaces limit the role to these namespaces, while they belong to Tenant;
	// none = all that belong to it.
	Namespaces []string
}

// GrantOf is the grant of a role that a document names; a role that does not exist
// gives no right.
func GrantOf(role, tenant string, namespaces []string) Grant {
	r, _ := RoleNamed(role)
	return Grant{Role: r, Tenant: resource.TenantID(tenant), Namespaces: namespaces}
}

// GrantList is many grants, of which those that count in one tenant are found without a
// look at all. The value is immutable.
type GrantList struct {
	// Invariant: grants are sorted by tenant.
	grants []Grant
}

// ListOf makes a list of grants, without repeated ones that follow each other. The grants
// of one tenant keep their order. The list keeps the slice.
func ListOf(all []Grant) GrantList {
	slices.SortStableFunc(all, func(a, b Grant) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return GrantList{slices.Clip(slices.CompactFunc(all, func(a, b Grant) bool {
		return a.Tenant == b.Tenant && a.Role == b.Role && slices.Equal(a.Namespaces, b.Namespaces)
	}))}
}

// Len is the number of grants.
func (l GrantList) Len() int { return len(l.grants) }

// of are the grants of one tenant; "" is the whole cluster.
func (l GrantList) of(tenant resource.TenantID) []Grant {
	from, found := slices.BinarySearchFunc(l.grants, tenant, func(g Grant, t resource.TenantID) int { return cmp.Compare(g.Tenant, t) })
	upto := from
	for found && upto < len(l.grants) && l.grants[upto].Tenant == tenant {
		upto++
	}
	return l.grants[from:upto]
}

// everywhere reports whether the role counts in the whole cluster.
func (g *Grant) everywhere() bool { return g.Tenant == "" }

// covers reports whether the role counts in a namespace that belongs to a tenant.
func (g *Grant) covers(namespace string, owner resource.TenantID) bool {
	return g.everywhere() || g.Tenant == owner && (len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, namespace))
}

// String is "editor of tenant vision, in vision-dev".
func (g Grant) String() string {
	switch {
	case g.everywhere():
		return g.Role.String()
	case len(g.Namespaces) == 0:
		return g.Role.String() + " of tenant " + string(g.Tenant)
	}
	return g.Role.String() + " of tenant " + string(g.Tenant) + ", in " + strings.Join(g.Namespaces, ", ")
}
