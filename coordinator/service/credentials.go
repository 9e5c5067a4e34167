package service

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
)

// Credentials are the tokens for the API and the bindings of roles. Any coordinator
// serves them, leader or not. The caller is that of the context (CallerOf): a
// tenant-admin sees and changes the tokens and bindings that give rights in the own
// tenant (MayGrant); for all others the answer is 404. All methods return an *api.Status as error
// for every refusal.
//
// A change is answered once each live coordinator goes by it, or after 5 s; then the
// answer names the coordinators that did not confirm the change.
type Credentials interface {
	// CreateToken makes a token; ttl 0 is a token that does not end. The answer alone
	// has the token itself.
	CreateToken(ctx context.Context, t *api.AccessToken, ttl time.Duration) (*api.AccessToken, error)
	GetToken(ctx context.Context, id string) (*api.AccessToken, error)
	// ListTokens returns all tokens by name. Tokens that expired a day ago are forgotten.
	ListTokens(ctx context.Context) (*api.AccessTokenList, error)
	// RotateToken gives a token a new secret, which the answer alone has. The secret
	// before ends after overlap.
	RotateToken(ctx context.Context, id string, overlap time.Duration) (*api.AccessToken, error)
	// RevokeToken ends a token, and with it the open watches of its bearers.
	RevokeToken(ctx context.Context, id string, require api.Preconditions) (*api.AccessToken, error)

	// PutRoleBinding creates a binding (create: refused with 409 where it exists) or
	// replaces it.
	PutRoleBinding(ctx context.Context, b *api.RoleBinding, create bool) (*api.RoleBinding, error)
	GetRoleBinding(ctx context.Context, name string) (*api.RoleBinding, error)
	ListRoleBindings(ctx context.Context) (*api.RoleBindingList, error)
	DeleteRoleBinding(ctx context.Context, name string, require api.Preconditions) (*api.RoleBinding, error)
}

// RoleBindingDocuments are the documents of that kind.
func RoleBindingDocuments(c Credentials) Documents[api.RoleBinding] {
	return Documents[api.RoleBinding]{
		Decode: api.DecodeRoleBinding,
		Meta:   func(b *api.RoleBinding) *api.ObjectMeta { return &b.Metadata },
		Typed: func(b *api.RoleBinding) {
			b.APIVersion, b.Kind = cmp.Or(b.APIVersion, api.APIVersion), cmp.Or(b.Kind, api.KindRoleBinding)
		},
		bare:   func(*api.RoleBinding) {},
		Get:    named(c.GetRoleBinding),
		create: puts(c.PutRoleBinding, true),
		update: puts(c.PutRoleBinding, false),
		Remove: removes(c.DeleteRoleBinding),
	}
}

var ListedAccessTokens = Listed[api.AccessToken]{
	Meta: func(t *api.AccessToken) *api.ObjectMeta { return &t.Metadata },
	Fields: map[string]func(*api.AccessToken) string{
		"metadata.name": func(t *api.AccessToken) string { return t.Metadata.Name },
		"spec.user":     func(t *api.AccessToken) string { return t.Spec.User },
		"spec.role":     func(t *api.AccessToken) string { return t.Spec.Role },
		"spec.tenant":   func(t *api.AccessToken) string { return t.Spec.Tenant },
	},
	Gives: func(t *api.AccessToken) Grant { return GrantOf(t.Spec.Role, t.Spec.Tenant, t.Spec.Namespaces) },
}

var ListedRoleBindings = Listed[api.RoleBinding]{
	Meta:  func(b *api.RoleBinding) *api.ObjectMeta { return &b.Metadata },
	Gives: func(b *api.RoleBinding) Grant { return GrantOf(b.Spec.Role, b.Spec.Tenant, b.Spec.Namespaces) },
	Fields: map[string]func(*api.RoleBinding) string{
		"metadata.name": func(b *api.RoleBinding) string { return b.Metadata.Name },
		"spec.role":     func(b *api.RoleBinding) string { return b.Spec.Role },
		"spec.tenant":   func(b *api.RoleBinding) string { return b.Spec.Tenant },
	},
}

// NoCredentials are those of a coordinator that keeps none: each call is refused.
type NoCredentials struct{}

var errNoCredentials = api.Errorf(http.StatusNotImplemented, "this coordinator keeps no access tokens and no role bindings")

// CreateToken implements Credentials.
func (NoCredentials) CreateToken(context.Context, *api.AccessToken, time.Duration) (*api.AccessToken, error) {
	return nil, errNoCredentials
}

// GetToken implements Credentials.
func (NoCredentials) GetToken(context.Context, string) (*api.AccessToken, error) {
	return nil, errNoCredentials
}

// ListTokens implements Credentials.
func (NoCredentials) ListTokens(context.Context) (*api.AccessTokenList, error) {
	return nil, errNoCredentials
}

// RotateToken implements Credentials.
func (NoCredentials) RotateToken(context.Context, string, time.Duration) (*api.AccessToken, error) {
	return nil, errNoCredentials
}

// RevokeToken implements Credentials.
func (NoCredentials) RevokeToken(context.Context, string, api.Preconditions) (*api.AccessToken, error) {
	return nil, errNoCredentials
}

// PutRoleBinding implements Credentials.
func (NoCredentials) PutRoleBinding(context.Context, *api.RoleBinding, bool) (*api.RoleBinding, error) {
	return nil, errNoCredentials
}

// GetRoleBinding implements Credentials.
func (NoCredentials) GetRoleBinding(context.Context, string) (*api.RoleBinding, error) {
	return nil, errNoCredentials
}

// ListRoleBindings implements Credentials.
func (NoCredentials) ListRoleBindings(context.Context) (*api.RoleBindingList, error) {
	return nil, errNoCredentials
}

// DeleteRoleBinding implements Credentials.
func (NoCredentials) DeleteRoleBinding(context.Context, string, api.Preconditions) (*api.RoleBinding, error) {
	return nil, errNoCredentials
}
