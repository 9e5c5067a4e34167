package access

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// mostRoles bounds the roles and lists that are kept of all holders together, about 64
// bytes each.
const mostRoles = 100_000

// manyRoles is the size from which the bindings of one subject are a list that all callers
// share. Those of smaller subjects are copied into a list of the caller, so that a caller of
// many groups has few lists.
const manyRoles = 16

// holder is the source of a caller's roles: under one set of rules, equal holders have
// equal roles.
type holder struct {
	// claims is the digest of the groups and the roles of an ID token; zero for none.
	claims [sha256.Size]byte
	user   string // "" where no binding counts for the user
	token  string // "" where no binding names the access token
}

// subject is the roles that the bindings give to one subject. The value is immutable.
type subject struct {
	grants []service.Grant // in the order of the bindings' names
	// shared are the grants as a list; the zero value where they are few.
	shared service.GrantList
}

// roles are those of a holder. The value is immutable.
type roles struct {
	lists []service.GrantList // none is empty
	// home is the tenant of the caller, "" for no tenant and for several.
	home resource.TenantID
	cost int
}

// rolesOf makes the roles of a caller from own roles and those of subjects, in their
// order; nil is a subject without roles.
func rolesOf(own []service.Grant, subjects ...*subject) roles {
	var r roles
	few := slices.Clone(own)
	for _, s := range subjects {
		switch {
		case s == nil:
			continue
		case s.shared.Len() > 0:
			r.lists = append(r.lists, s.shared)
		default:
			few = append(few, s.grants...)
		}
	}
	r.home = homeOf(own, subjects)
	if len(few) > 0 {
		r.lists = append(r.lists, service.ListOf(few))
	}
	r.cost = 1 + len(r.lists) + len(few)
	return r
}

// homeOf is the tenant of the first own role, or the only tenant in which bindings give roles.
// Any tenant-admin may name any user in a binding: requests of the user must not count in
// the tenant of the binding, and its audit must not show them.
func homeOf(own []service.Grant, subjects []*subject) resource.TenantID {
	if len(own) > 0 {
		return own[0].Tenant
	}
	var home resource.TenantID
	for _, s := range subjects {
		if s == nil {
			continue
		}
		for _, g := range s.grants {
			if home != "" && g.Tenant != home {
				return ""
			}
			home = g.Tenant
		}
	}
	return home
}

// holders are the roles of callers as worked out under one set of rules, which end with the rules.
// The zero value is empty.
//
// Invariant: kept is the cost of the roles in known; it is at most mostRoles.
type holders struct {
	mu    sync.RWMutex
	known map[holder]roles
	kept  int
}

// of are the roles of a holder, from workOut where they are not known.
func (h *holders) of(who holder, workOut func() roles) roles {
	h.mu.RLock()
	r, known := h.known[who]
	h.mu.RUnlock()
	if known {
		return r
	}
	r = workOut()
	h.keep(who, r)
	return r
}

// keep keeps the roles of a holder. Where there is no room others are forgotten, whose
// roles are worked out again when they come back.
func (h *holders) keep(who holder, r roles) {
	if r.cost > mostRoles {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.known[who]; known { // another request was first
		return
	}
	if h.known == nil {
		h.known = map[holder]roles{}
	}
	for other, of := range h.known {
		if h.kept+r.cost <= mostRoles {
			break
		}
		delete(h.known, other)
		h.kept -= of.cost
	}
	h.known[who] = r
	h.kept += r.cost
}

// person is the caller whom the identity provider has named: the roles are those of the
// claims, and those of the bindings of the user and of the groups.
func (r *rules) person(found oidc.Person) service.Principal {
	who := holder{claims: found.Claims}
	if r.users[found.User] != nil {
		who.user = found.User
	}
	workOut := func() roles {
		subjects := []*subject{r.users[found.User]}
		for _, g := range found.Groups {
			subjects = append(subjects, r.groups[g])
		}
		return rolesOf(found.Grants, subjects...)
	}
	var own roles
	if found.Claims == ([sha256.Size]byte{}) && len(found.Groups)+len(found.Grants) > 0 {
		own = workOut() // nothing tells this person from another
	} else {
		own = r.holders.of(who, workOut)
	}
	p := service.Principal{Name: found.User, Groups: found.Groups, Proof: api.ProofOIDC, Expires: found.Expires, Lists: own.lists}
	if len(p.Lists) > 0 { // a caller of a tenant without a role would be its editor
		p.Tenant = cmp.Or(found.Tenant, own.home)
	}
	return p
}

// principal is the caller who has shown a secret of a token.
func (r *rules) principal(t *token, shown *secret) service.Principal {
	p := t.principal
	if !shown.expires.IsZero() && (p.Expires.IsZero() || shown.expires.Before(p.Expires)) {
		p.Expires = shown.expires
	}
	var who holder
	if r.bound[t.record.ID] != nil {
		who.token = t.record.ID
	}
	if t.record.Role == "" && r.users[t.record.User] != nil {
		who.user = t.record.User
	}
	if who == (holder{}) {
		return p
	}
	own := r.holders.of(who, func() roles { return rolesOf(t.principal.Grants, r.users[who.user], r.bound[who.token]) })
	p.Grants, p.Lists, p.Tenant = nil, own.lists, cmp.Or(p.Tenant, own.home)
	return p
}
