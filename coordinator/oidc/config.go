package oidc

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
)

// Config is one provider. The keys of the configuration file have the same names, below
// "oidc".
type Config struct {
	// Issuer is the provider's URL, exactly as its tokens have it in "iss".
	Issuer string
	// ClientID is the cluster's name at the provider: a token is for it where "aud" has
	// it.
	ClientID string
	// CAFile is a PEM file of the authorities by which the provider is trusted; "" is
	// the system's.
	CAFile string
	// UserClaim names the claim with the name of the user; "" is "sub".
	UserClaim string
	// GroupsClaim names the claim with the groups: a text or a list of texts. "" = none.
	GroupsClaim string
	// Prefix stands before each user and each group, so that no provider names a user
	// of another origin. "" is DefaultPrefix; NoPrefix is none.
	Prefix string
	// TenantClaim names the claim with the tenant of the user. "" = none.
	TenantClaim string
	// RolesClaim names the claim with the values of Roles: a text or a list of texts.
	// "" = none: role bindings alone give roles.
	RolesClaim string
	// Roles are the roles that values of RolesClaim give. The roles viewer, editor and
	// tenant-admin count in the tenant of TenantClaim.
	Roles map[string]string
	// RequiredClaims have to be in each token, with these texts.
	RequiredClaims map[string]string
	// Scopes are asked for at a login, beside openid; nil is DefaultScopes.
	Scopes []string
	// Algorithms are those of signatures; nil is DefaultAlgorithms.
	Algorithms []string
}

const (
	// DefaultPrefix begins the names of users and groups of a provider.
	DefaultPrefix = "oidc:"
	// NoPrefix is the value of Config.Prefix for none.
	NoPrefix = "-"
)

// DefaultScopes are asked for at a login: profile and email have the claims of names, and
// offline_access gives a refresh token.
func DefaultScopes() []string { return []string{"profile", "email", "offline_access"} }

// DefaultAlgorithms are the algorithms of signatures that are trusted. All are
// asymmetric: with a symmetric one each coordinator could sign tokens.
func DefaultAlgorithms() []string { return []string{"RS256", "ES256"} }

// known are the algorithms that may be configured (RFC 7518, RFC 8037).
var known = []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"}

// Bounds of a configuration.
const (
	maxRoles    = 256
	maxRequired = 32
	maxScopes   = 32
	maxName     = 256 // bytes of a claim's name, a scope or a value
)

// Check refuses a configuration that cannot be meant. The error joins one entry for each
// wrong field, with the key of the configuration file.
func (c Config) Check() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if u, err := url.Parse(c.Issuer); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		refuse("oidc.issuer: %q: want https://HOST/PATH, as the tokens of the provider have it in iss", c.Issuer)
	}
	if !isLine(c.ClientID) {
		refuse("oidc.clientID: %q: want the name of this cluster at the provider, 1 to %d printable characters", c.ClientID, maxName)
	}
	return errors.Join(errors.Join(errs...), c.CheckNames())
}

// CheckNames is Check of everything but the provider itself.
func (c Config) CheckNames() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, claim := range []struct{ key, name string }{{"userClaim", c.UserClaim}, {"groupsClaim", c.GroupsClaim}, {"tenantClaim", c.TenantClaim}, {"rolesClaim", c.RolesClaim}} {
		if claim.name != "" && !isLine(claim.name) {
			refuse("oidc.%s: %q: want 1 to %d printable characters", claim.key, claim.name, maxName)
		}
	}
	if c.Prefix != "" && (!isLine(c.Prefix) || len(c.Prefix) > 32) {
		refuse("oidc.prefix: %q: want 1 to 32 printable characters, or %q for none", c.Prefix, NoPrefix)
	}
	errs = append(errs, c.checkRoles())
	if len(c.RequiredClaims) > maxRequired {
		refuse("oidc.requiredClaims: %d claims, the limit is %d", len(c.RequiredClaims), maxRequired)
	}
	for name, value := range c.RequiredClaims {
		if !isLine(name) || !isLine(value) {
			refuse("oidc.requiredClaims: %q: %q: want 1 to %d printable characters each", name, value, maxName)
		}
	}
	if len(c.Scopes) > maxScopes || slices.ContainsFunc(c.Scopes, func(s string) bool { return !isLine(s) || strings.Contains(s, " ") }) {
		refuse("oidc.scopes: %q: want at most %d words", c.Scopes, maxScopes)
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(known, a) {
			refuse("oidc.algorithms: %q: want %s", a, strings.Join(known, ", "))
		}
	}
	return errors.Join(errs...)
}

func (c Config) checkRoles() error {
	var errs []error
	switch {
	case len(c.Roles) > maxRoles:
		errs = append(errs, fmt.Errorf("oidc.roles: %d values, the limit is %d", len(c.Roles), maxRoles))
	case len(c.Roles) > 0 && c.RolesClaim == "":
		errs = append(errs, errors.New("oidc.roles: set, without oidc.rolesClaim: name the claim that has these values"))
	case len(c.Roles) == 0 && c.RolesClaim != "":
		errs = append(errs, fmt.Errorf("oidc.rolesClaim: %q, without oidc.roles: name the role of each value", c.RolesClaim))
	}
	for value, role := range c.Roles {
		switch role {
		case api.RoleViewer, api.RoleEditor, api.RoleTenantAdmin:
			if c.TenantClaim == "" {
				errs = append(errs, fmt.Errorf("oidc.roles: %q: %s counts in a tenant: set oidc.tenantClaim, or give the role by a role binding", value, role))
			}
		case api.RoleOperator, api.RoleAdmin:
		default:
			errs = append(errs, fmt.Errorf("oidc.roles: %q: %q: want viewer, editor, tenant-admin, operator or admin", value, role))
		}
	}
	return errors.Join(errs...)
}

// isLine reports whether a text is one line of printable characters.
func isLine(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// NamesBegin is the prefix of the names of users and groups, "" for none.
func (c Config) NamesBegin() string { return c.prefix() }

// prefix is what stands before each name.
func (c Config) prefix() string {
	switch c.Prefix {
	case "":
		return DefaultPrefix
	case NoPrefix:
		return ""
	}
	return c.Prefix
}
