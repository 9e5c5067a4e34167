package record

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// The keys of the rights to the API (docs/security.md). They lie below AuthPrefix.
const (
	AuthPrefix = Root + "auth/"
	// AccessTokensPrefix holds AccessToken by id.
	AccessTokensPrefix = AuthPrefix + "tokens/"
	// RoleBindingsPrefix holds Object by name.
	RoleBindingsPrefix = AuthPrefix + "bindings/"
)

// AccessTokenKey is the key of an access token.
func AccessTokenKey(id string) string { return join(AccessTokensPrefix, id) }

// ParseAccessTokenKey is the inverse of AccessTokenKey.
func ParseAccessTokenKey(key string) (id string, err error) {
	err = split("access token", key, AccessTokensPrefix, &id)
	return id, err
}

// RoleBindingKey is the key of a role binding.
func RoleBindingKey(name string) string { return join(RoleBindingsPrefix, name) }

// ParseRoleBindingKey is the inverse of RoleBindingKey.
func ParseRoleBindingKey(key string) (name string, err error) {
	err = split("role binding", key, RoleBindingsPrefix, &name)
	return name, err
}

// MostSecrets bounds the secrets of a token that are valid at one time.
const MostSecrets = 2

// AccessToken is a token of a person or a program for the API.
type AccessToken struct {
	ID string `json:"id"`
	// Secrets are the secrets that prove the token, the newest first.
	//
	// Invariant: either there are secrets or there is a certificate.
	Secrets []TokenSecret `json:"secrets,omitempty"`
	// Certificate is the client certificate that proves the token.
	Certificate *TokenCertificate `json:"certificate,omitempty"`
	// User is the person or the program that uses the token.
	User string `json:"user"`
	// Role, Tenant and Namespaces are the grant of the token; without a role the token
	// has the roles that bindings give to its user.
	Role       string   `json:"role,omitempty"`
	Tenant     string   `json:"tenant,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Ceiling is the greatest priority of work that the token submits; nil = any.
	Ceiling *int32 `json:"ceiling,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	Creator     string `json:"creator"`
	Created     string `json:"created"`           // RFC 3339
	Expires     string `json:"expires,omitempty"` // RFC 3339; "" = never
}

// TokenSecret is the digest of a secret of a token.
type TokenSecret struct {
	// SHA256 is the digest of "ID.SECRET", in hex.
	SHA256  string `json:"sha256"`
	Created string `json:"created"`           // RFC 3339
	Expires string `json:"expires,omitempty"` // RFC 3339; "" = with the token
}

// TokenCertificate is the client certificate of a token.
type TokenCertificate struct {
	// SHA256 is the digest of the certificate in DER, in hex.
	SHA256 string `json:"sha256"`
	// Serial is the serial number, in hex.
	Serial string `json:"serial"`
	// Authority is the key identifier of the authority that has signed, in hex.
	Authority string `json:"authority"`
}

func (c *TokenCertificate) check(expires string) error {
	if sum, err := hex.DecodeString(c.SHA256); err != nil || len(sum) != 32 {
		return errors.New("certificate.sha256: want 64 hex digits")
	}
	if id, err := hex.DecodeString(c.Authority); err != nil || len(id) == 0 {
		return errors.New("certificate.authority: want a key identifier in hex")
	}
	if c.Serial == "" || expires == "" {
		return fmt.Errorf("certificate: serial %q, expires %q: want both", c.Serial, expires)
	}
	return nil
}

func (t AccessToken) check() error {
	switch n := len(t.Secrets); {
	case t.ID == "" || t.User == "" || t.Creator == "" || t.Created == "":
		return fmt.Errorf("token %q of user %q: want id, user, creator and created", t.ID, t.User)
	case t.Certificate != nil && n > 0:
		return fmt.Errorf("secrets: %d of them beside a certificate", n)
	case t.Certificate == nil && (n < 1 || n > MostSecrets):
		return fmt.Errorf("secrets: %d of them, want 1 to %d", n, MostSecrets)
	case t.Role == "" && (t.Tenant != "" || len(t.Namespaces) > 0):
		return errors.New("a tenant or namespaces without a role")
	case t.Tenant == "" && len(t.Namespaces) > 0:
		return errors.New("namespaces without a tenant")
	}
	for i, s := range t.Secrets {
		if sum, err := hex.DecodeString(s.SHA256); err != nil || len(sum) != 32 {
			return fmt.Errorf("secrets[%d].sha256: want 64 hex digits", i)
		}
		if err := checkTime(s.Expires); err != nil {
			return fmt.Errorf("secrets[%d].expires: %w", i, err)
		}
	}
	if err := checkTime(t.Expires); err != nil {
		return fmt.Errorf("expires: %w", err)
	}
	if t.Certificate != nil {
		return t.Certificate.check(t.Expires)
	}
	return nil
}

// checkTime refuses a text that is neither empty nor a time.
func checkTime(text string) error {
	if text == "" {
		return nil
	}
	_, err := time.Parse(time.RFC3339, text)
	return err
}
