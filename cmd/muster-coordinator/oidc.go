package main

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/coordinator/oidc"
)

// oidcConfig is the identity provider of people; without an issuer there is none.
type oidcConfig struct {
	Issuer         string            `json:"issuer"`
	ClientID       string            `json:"clientID"`
	CAFile         string            `json:"caFile"`
	UserClaim      string            `json:"userClaim"`
	GroupsClaim    string            `json:"groupsClaim"`
	Prefix         string            `json:"prefix"`
	TenantClaim    string            `json:"tenantClaim"`
	RolesClaim     string            `json:"rolesClaim"`
	Roles          map[string]string `json:"roles"`
	RequiredClaims map[string]string `json:"requiredClaims"`
	Scopes         []string          `json:"scopes"`
	Algorithms     []string          `json:"algorithms"`
}

// defaultOIDC is the section without an issuer.
func defaultOIDC() oidcConfig {
	return oidcConfig{UserClaim: "sub", Prefix: oidc.DefaultPrefix, Scopes: oidc.DefaultScopes(), Algorithms: oidc.DefaultAlgorithms()}
}

// check returns the provider, nil for none.
func (c oidcConfig) check() (*oidc.Config, error) {
	made := oidc.Config(c)
	if c.Issuer == "" {
		return nil, errors.Join(made.CheckNames(), c.checkUnused())
	}
	if err := made.Check(); err != nil {
		return nil, err
	}
	return &made, nil
}

// checkUnused refuses settings of a provider that is not named.
func (c oidcConfig) checkUnused() error {
	var errs []error
	unused := func(key string, set bool, value any) {
		if set {
			errs = append(errs, fmt.Errorf("oidc.%s: %v: has no effect without oidc.issuer", key, value))
		}
	}
	unused("clientID", c.ClientID != "", c.ClientID)
	unused("caFile", c.CAFile != "", c.CAFile)
	unused("groupsClaim", c.GroupsClaim != "", c.GroupsClaim)
	unused("tenantClaim", c.TenantClaim != "", c.TenantClaim)
	unused("rolesClaim", c.RolesClaim != "", c.RolesClaim)
	unused("roles", len(c.Roles) > 0, c.Roles)
	unused("requiredClaims", len(c.RequiredClaims) > 0, c.RequiredClaims)
	return errors.Join(errs...)
}
