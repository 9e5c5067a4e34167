package oidc

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// Skew is how far the clocks of the provider and of a coordinator may differ.
const Skew = 30 * time.Second

// Bounds of the claims that are taken.
const (
	maxGroups = 256
	maxUser   = 256 // bytes, with the prefix
)

// Person is the bearer of a token, by its claims.
type Person struct {
	User   string
	Groups []string
	// Tenant is the tenant of the claim, "" for none.
	Tenant resource.TenantID
	// Grants are the roles of the claims, without those of role bindings.
	Grants []service.Grant
	// Expires is when the token ends, the skew included.
	Expires time.Time
	// Claims is the digest of Groups and Grants: people with equal digests have equal
	// ones. It is zero for a person with neither.
	Claims [sha256.Size]byte
}

// claims are those of a token.
type claims map[string]json.RawMessage

// refusedError is the reason why a token is not good here. Its words are for the bearer.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

func refuse(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

// judge decides who the bearer of a token with these claims is, at a time. It does not
// judge the signature.
func (c Config) judge(in claims, now time.Time) (Person, error) {
	var p Person
	if iss, _ := in.text("iss"); iss != c.Issuer {
		return p, refuse("the token was issued by %q, and this cluster trusts %s", clip(iss), c.Issuer)
	}
	audience, err := in.texts("aud")
	switch {
	case err != nil:
		return p, err
	case !slices.Contains(audience, c.ClientID):
		return p, refuse("the token is for %q, and this cluster is %q: log in again with muster login", clipAll(audience), c.ClientID)
	}
	if azp, has := in.text("azp"); has && azp != c.ClientID {
		return p, refuse("the token was given to %q, and this cluster is %q: log in again with muster login", clip(azp), c.ClientID)
	}
	if p.Expires, err = in.holds(now); err != nil {
		return p, err
	}
	for _, name := range sortedKeys(c.RequiredClaims) {
		if got, _ := in.text(name); got != c.RequiredClaims[name] {
			return p, refuse("the token has no claim %s of the value %q, which this cluster requires", name, c.RequiredClaims[name])
		}
	}
	if p.User, err = c.user(in); err != nil {
		return p, err
	}
	if p.Groups, err = c.groups(in); err != nil {
		return p, err
	}
	if err = c.roles(in, &p); err != nil {
		return p, err
	}
	p.Claims, err = p.digest()
	return p, err
}

// digest is the value of Claims.
func (p *Person) digest() (sum [sha256.Size]byte, err error) {
	if len(p.Groups) == 0 && len(p.Grants) == 0 {
		return sum, nil
	}
	text, err := json.Marshal(struct {
		Groups []string
		Grants []service.Grant
	}{p.Groups, p.Grants})
	return sha256.Sum256(text), err
}

// holds checks the times of a token, and returns its end.
func (in claims) holds(now time.Time) (end time.Time, err error) {
	exp, has, err := in.instant("exp")
	switch {
	case err != nil:
		return end, err
	case !has:
		return end, refuse("the token has no claim exp: a token has to end")
	case !now.Before(exp.Add(Skew)):
		return end, refuse("the token expired at %s: log in again with muster login", exp.UTC().Format(time.RFC3339))
	}
	for _, name := range []string{"nbf", "iat"} {
		at, has, err := in.instant(name)
		switch {
		case err != nil:
			return end, err
		case has && now.Add(Skew).Before(at):
			return end, refuse("the token is good from %s on (%s), and it is %s here: is the clock of the provider or of the coordinator wrong?", at.UTC().Format(time.RFC3339), name, now.UTC().Format(time.RFC3339))
		}
	}
	return exp.Add(Skew), nil
}

// user is the name of the bearer.
func (c Config) user(in claims) (string, error) {
	name := c.UserClaim
	if name == "" {
		name = "sub"
	}
	text, has := in.text(name)
	switch {
	case !has || text == "":
		return "", refuse("the token has no claim %s, which names the user", name)
	case !isLine(text) || len(c.prefix())+len(text) > maxUser:
		return "", refuse("the claim %s of the token is no name of a user: want 1 to %d printable characters", name, maxUser-len(c.prefix()))
	}
	if raw, has := in["email_verified"]; has && name == "email" {
		// Providers send true and "true"; everything else is no proof of the address.
		if said := string(raw); said != "true" && said != `"true"` {
			return "", refuse("the provider has not verified the address %s (email_verified is %s)", clip(text), clip(said))
		}
	}
	user := c.prefix() + text
	for _, other := range []string{service.HostPrefix, api.CertificatePrefix} {
		if strings.HasPrefix(user, other) {
			return "", refuse("the claim %s of the token names the user %q: names that begin with %s are of another origin; set oidc.prefix", name, clip(user), other)
		}
	}
	return user, nil
}

// groups are the groups of the bearer.
func (c Config) groups(in claims) ([]string, error) {
	if c.GroupsClaim == "" {
		return nil, nil
	}
	named, err := in.texts(c.GroupsClaim)
	if err != nil {
		return nil, err
	}
	if len(named) > maxGroups {
		return nil, refuse("the claim %s of the token has %d groups, the limit is %d", c.GroupsClaim, len(named), maxGroups)
	}
	var groups []string
	for _, g := range named {
		if isLine(g) {
			groups = append(groups, c.prefix()+g)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// roles adds the tenant and the roles of the claims.
func (c Config) roles(in claims, p *Person) error {
	if c.TenantClaim != "" {
		tenant, has := in.text(c.TenantClaim)
		if has && tenant != "" && !api.IsLabel(tenant) {
			return refuse("the claim %s of the token, %q, is no name of a tenant: want 1 to 63 of a-z, 0-9 and '-'", c.TenantClaim, clip(tenant))
		}
		p.Tenant = resource.TenantID(tenant)
	}
	if c.RolesClaim == "" {
		return nil
	}
	values, err := in.texts(c.RolesClaim)
	if err != nil {
		return err
	}
	slices.Sort(values)
	for _, value := range slices.Compact(values) {
		role, known := service.RoleNamed(c.Roles[value])
		if !known {
			continue // a role of another program
		}
		g := service.Grant{Role: role}
		if role != service.Operator && role != service.Admin {
			if g.Tenant = p.Tenant; p.Tenant == "" {
				continue // the role counts in a tenant, and the token names none
			}
		}
		p.Grants = append(p.Grants, g)
	}
	return nil
}

// text is a claim that is a text.
func (in claims) text(name string) (text string, has bool) {
	raw, has := in[name]
	has = has && json.Unmarshal(raw, &text) == nil
	return text, has
}

// texts is a claim that is a text or a list of texts.
func (in claims) texts(name string) ([]string, error) {
	raw, has := in[name]
	if !has || string(raw) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var all []string
	if json.Unmarshal(raw, &all) != nil {
		return nil, refuse("the claim %s of the token is neither a text nor a list of texts", name)
	}
	return all, nil
}

// latest bounds the times of claims, in seconds since 1970: the year 9999.
const latest = 253402300799

// instant is a claim that is a time (RFC 7519, NumericDate: seconds, with a fraction).
func (in claims) instant(name string) (at time.Time, has bool, err error) {
	raw, has := in[name]
	if !has {
		return at, false, nil
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(seconds >= 0 && seconds <= latest) {
		return at, false, refuse("the claim %s of the token, %s, is no time in seconds since 1970", name, clip(string(raw)))
	}
	return time.Unix(int64(seconds), 0), true, nil
}
