package access

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/service"
)

// mostRoles bounds the roles that are kept of all people together, about 64 bytes each.
const mostRoles = 100_000

// persons are the roles of people as worked out under one set of rules, by the digests of
// their tokens: from the claims, from the bindings of the user and from those of the groups. They
// are forgotten with the rules. The zero value is empty.
//
// Invariant: kept counts the roles in roles, and one for each person; it is at most
// mostRoles.
type persons struct {
	mu    sync.RWMutex
	roles map[[sha256.Size]byte][]service.Grant
	kept  int
}

// of are the roles of a person under rules. Nobody changes them.
func (p *persons) of(found *oidc.Person, now *rules) []service.Grant {
	p.mu.RLock()
	roles, known := p.roles[found.Token]
	p.mu.RUnlock()
	if known {
		return roles
	}
	roles = slices.Concat(found.Grants, now.users[found.User])
	for _, g := range found.Groups {
		roles = append(roles, now.groups[g]...)
	}
	roles = slices.Clip(roles)
	if found.Token != ([sha256.Size]byte{}) { // else nothing tells this person from another
		p.keep(found.Token, roles)
	}
	return roles
}

// keep keeps the roles of a person. Where there is no room all others are forgotten, who
// are worked out again when they come back.
func (p *persons) keep(token [sha256.Size]byte, roles []service.Grant) {
	cost := len(roles) + 1
	if cost > mostRoles {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.roles[token]; known { // another request was first
		return
	}
	if p.roles == nil || p.kept+cost > mostRoles {
		p.roles, p.kept = map[[sha256.Size]byte][]service.Grant{}, 0
	}
	p.roles[token] = roles
	p.kept += cost
}
