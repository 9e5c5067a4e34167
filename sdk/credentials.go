package sdk

import (
	"context"
	"net/http"
	"net/url"

	"github.com/musterd/muster/api"
)

// Tokens are the access tokens of people and programs.
type Tokens struct {
	client *Client
	Followed[api.AccessToken]
}

// tokenKind is no entry of Kinds: tokens are made by requests of their own.
var tokenKind = kindOf(Kind{Name: "token", Plural: "tokens", Document: api.KindAccessToken},
	func([]byte) (*api.AccessToken, *api.Status) {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "kind: AccessToken: tokens are made by Tokens.Create")
	}, func(t *api.AccessToken) *api.ObjectMeta { return &t.Metadata }, tokenParts)

func tokenParts(l *api.AccessTokenList) (*api.ListMeta, *[]api.AccessToken) {
	return &l.Metadata, &l.Items
}

// Tokens selects the access tokens. Admins see all of them, a tenant-admin those of the
// own tenant.
func (c *Client) Tokens() Tokens {
	return Tokens{c, Followed[api.AccessToken]{c.Resource(tokenKind, "")}}
}

const accessTokensPath = "/api/v1/tokens"

func accessTokenPath(id string) string { return accessTokensPath + "/" + url.PathEscape(id) }

// Create makes a token; the answer alone has it. The request is sent once.
func (t Tokens) Create(ctx context.Context, spec api.AccessTokenSpec) (*api.AccessToken, error) {
	made := new(api.AccessToken)
	return made, Identity{t.client}.post(ctx, accessTokensPath, api.AccessToken{Spec: spec}, made)
}

// Get returns a token without its secrets.
func (t Tokens) Get(ctx context.Context, id string) (*api.AccessToken, error) {
	return call[api.AccessToken](ctx, t.client, request{method: http.MethodGet, path: accessTokenPath(id)})
}

// List returns the tokens by name, without their secrets. All pages are fetched.
func (t Tokens) List(ctx context.Context) (*api.AccessTokenList, error) {
	return listAll(ctx, objects{client: t.client, path: accessTokensPath}, ListOptions{}, tokenParts)
}

// Rotate gives a token a new secret, which the answer alone has. The secret before
// ends after overlap, "" being 24h. The request is sent once.
func (t Tokens) Rotate(ctx context.Context, id, overlap string) (*api.AccessToken, error) {
	made := new(api.AccessToken)
	return made, Identity{t.client}.post(ctx, accessTokenPath(id)+"/rotate", api.RotateOptions{Overlap: overlap}, made)
}

// RevokeIf is Revoke of a token that has the required values; another token is left as
// it is, and the answer is 409.
func (t Tokens) RevokeIf(ctx context.Context, id string, require api.Preconditions) (*api.AccessToken, error) {
	return removeIf[api.AccessToken](ctx, t.client, request{path: accessTokenPath(id)}, require)
}

// Revoke ends a token. It returns once each live coordinator refuses the token;
// status.notFollowedBy has the coordinators that did not confirm that within 5 s.
func (t Tokens) Revoke(ctx context.Context, id string) (*api.AccessToken, error) {
	return call[api.AccessToken](ctx, t.client, request{method: http.MethodDelete, path: accessTokenPath(id)})
}

// RoleBindings give roles to users and tokens.
type RoleBindings struct {
	quotaDocuments[api.RoleBinding]
}

// RoleBindings selects the role bindings. Admins see all of them, a tenant-admin those
// of the own tenant.
func (c *Client) RoleBindings() RoleBindings {
	return RoleBindings{quotaDocuments[api.RoleBinding]{
		objects{client: c, path: collection("", "rolebindings")}, followed[api.RoleBinding](c, "rolebindings", ""), func(b *api.RoleBinding) string { return b.Metadata.Name },
	}}
}

// List returns role bindings ordered by name.
func (b RoleBindings) List(ctx context.Context, o ListOptions) (*api.RoleBindingList, error) {
	return listAll(ctx, b.objects, o, func(l *api.RoleBindingList) (*api.ListMeta, *[]api.RoleBinding) { return &l.Metadata, &l.Items })
}
