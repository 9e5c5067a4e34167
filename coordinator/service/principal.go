package service

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Principal is the authenticated caller.
type Principal struct {
	// Name is the user, for people: records, logs and refusals have it.
	Name string
	// Tenant is the tenant that the caller belongs to, "" for none. A caller of a
	// tenant without grants is an editor of that tenant.
	Tenant resource.TenantID
	// Admin has the role admin in the whole cluster.
	Admin bool
	// Grants are the roles of the caller, with those of Lists.
	Grants []Grant
	// Lists are further roles, which many callers may share.
	Lists []GrantList
	// Groups are the groups of the caller by the identity provider.
	Groups []string
	// Proof is the way in which the caller has proven the name: api.ProofAccessToken and
	// its like.
	Proof string
	// Token is the id of the access token, or of the client certificate, that the caller
	// has shown; "" for none.
	Token string
	// Ceiling is the greatest priority of work that the caller submits; nil = any.
	Ceiling *int32
	// Expires is the time when the token ends; the zero value is never.
	Expires time.Time
}

// everyGrant yields the grants in force.
func (p *Principal) everyGrant(yield func(*Grant) bool) {
	if p.ownGrants(yield) {
		for _, l := range p.Lists {
			if !each(l.grants, yield) {
				return
			}
		}
	}
}

// grantsIn yields the grants in force that count in the whole cluster or in a tenant; ""
// is no tenant.
func (p *Principal) grantsIn(tenant resource.TenantID, yield func(*Grant) bool) {
	goOn := p.ownGrants(func(g *Grant) bool { return !g.everywhere() && g.Tenant != tenant || yield(g) })
	for i := 0; goOn && i < len(p.Lists); i++ {
		goOn = each(p.Lists[i].of(""), yield) && (tenant == "" || each(p.Lists[i].of(tenant), yield))
	}
}

// ownGrants yields the grants in force that no list has, and reports whether yield wants
// more.
func (p *Principal) ownGrants(yield func(*Grant) bool) bool {
	switch {
	case p.Admin && !yield(&Grant{Role: Admin}):
		return false
	case !p.Admin && len(p.Grants) == 0 && len(p.Lists) == 0 && p.Tenant != "":
		return yield(&Grant{Role: Editor, Tenant: p.Tenant})
	}
	return each(p.Grants, yield)
}

// each yields grants, and reports whether yield wants more.
func each(all []Grant, yield func(*Grant) bool) bool {
	for i := range all {
		if !yield(&all[i]) {
			return false
		}
	}
	return true
}

// hasIn reports whether a grant of one of the roles counts in the whole cluster, or in a
// tenant and passes; a nil test passes all.
func (p *Principal) hasIn(tenant resource.TenantID, roles Roles, test func(*Grant) bool) bool {
	for g := range func(yield func(*Grant) bool) { p.grantsIn(tenant, yield) } {
		if roles.Has(g.Role) && (test == nil || test(g)) {
			return true
		}
	}
	return false
}

// has reports whether a grant of one of the roles passes; a nil test passes all.
func (p *Principal) has(roles Roles, test func(*Grant) bool) bool {
	for g := range p.everyGrant {
		if roles.Has(g.Role) && (test == nil || test(g)) {
			return true
		}
	}
	return false
}

// Everywhere reports whether the caller has one of the roles in the whole cluster.
func (p Principal) Everywhere(roles Roles) bool {
	return p.hasIn("", roles, nil)
}

// Tenants are the tenants in which the caller has one of the roles, by name.
func (p Principal) Tenants(roles Roles) []string {
	var names []string
	for g := range p.everyGrant {
		if roles.Has(g.Role) && !g.everywhere() {
			names = append(names, string(g.Tenant))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Roles lists the grants in force for people, "none" where there are none.
func (p Principal) Roles() string {
	var all []string
	for g := range p.everyGrant {
		all = append(all, g.String())
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

// Authenticator turns a bearer token into a principal. It is called for every
// request, possibly at once from many goroutines, and may block. A nil error
// means the token is good; an *api.Status is answered as it is, any other
// error as 401 without its text.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// AuthenticateCertificate implements Certified: the last Authenticator that knows
// certificates answers.
func (a anyOf) AuthenticateCertificate(chain []*x509.Certificate, passedOn string) (p Principal, err error) {
	err = errUnknownToken
	for _, one := range a {
		if certified, is := one.(Certified); is {
			p, err = certified.AuthenticateCertificate(chain, passedOn)
		}
	}
	return p, err
}

// StaticToken is an Authenticator with one token, whose bearer is the admin.
// An empty token lets nobody in.
func StaticToken(token string) Authenticator {
	return staticToken{sum: sha256.Sum256([]byte(token)), empty: token == ""}
}

type staticToken struct {
	sum   [sha256.Size]byte
	empty bool
}

var errUnknownToken = errors.New("unknown token")

// Authenticate compares in constant time.
func (s staticToken) Authenticate(_ context.Context, token string) (Principal, error) {
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], s.sum[:]) != 1 || s.empty {
		return Principal{}, errUnknownToken
	}
	return Principal{Name: "admin", Admin: true, Proof: api.ProofAdminToken}, nil
}

// AnyOf is an Authenticator that asks each of several in turn, and answers as the
// last where all refuse.
func AnyOf(all ...Authenticator) Authenticator { return anyOf(all) }

type anyOf []Authenticator

func (a anyOf) Authenticate(ctx context.Context, token string) (p Principal, err error) {
	err = errUnknownToken
	for _, one := range a {
		if p, err = one.Authenticate(ctx, token); err == nil {
			return p, nil
		}
	}
	return Principal{}, err
}
