package service

import (
	"time"

	"github.com/musterd/muster/api"
)

// WhoAmI is a caller for the caller's own eyes.
func WhoAmI(p Principal) *api.WhoAmI {
	shown := &api.WhoAmI{
		APIVersion: api.APIVersion, Kind: api.KindWhoAmI, User: p.Name, Proof: p.Proof, Token: p.Token, Tenant: string(p.Tenant), Groups: p.Groups,
		Roles: []api.GivenRole{}, PriorityCeiling: p.Ceiling,
	}
	for g := range p.everyGrant {
		shown.Roles = append(shown.Roles, api.GivenRole{Role: g.Role.String(), Tenant: string(g.Tenant), Namespaces: g.Namespaces})
	}
	if !p.Expires.IsZero() {
		shown.Expires = p.Expires.UTC().Format(time.RFC3339)
	}
	return shown
}
