package sdk

import (
	"context"
	"net/http"
	"net/url"

	"github.com/musterd/muster/api"
)

// Tokens are the access tokens of people and programs.
type Tokens struct{ client *Client }

// Tokens selects the access tokens. Admins see all of them, a tenant-admin those of the
// own tenant.
func (c *Client) Tokens() Tokens { return Tokens{c} }

const accessTokensPath = "/api/v1/tokens"

func accessTokenPath(id string) string { return accessTokensPath + "/" + url.PathEscape(id) }

// Create makes a token; the answer alone has it. The request is sent once.
func (t Tokens) Create(ctx context.Context, spec api.AccessTokenSpec) (*api.AccessToken, error) {
	made := new(api.AccessToken)
	return made, Identity(t).post(ctx, accessTokensPath, api.AccessToken{Spec: spec}, made)
}

// Get returns a token without its secrets.
func (t Tokens) Get(ctx context.Context, id string) (*api.AccessToken, error) {
	return call[api.AccessToken](ctx, t.client, request{method: http.MethodGet, path: accessTokenPath(id)})
}

// List returns the tokens, oldest first, without their secrets.
func (t Tokens) List(ctx context.Context) (*api.AccessTokenList, error) {
	return call[api.AccessTokenList](ctx, t.client, request{method: http.MethodGet, path: accessTokensPath})
}

// Rotate gives a token a new secret, which the answer alone has. The secret before
// ends after overlap, "" being 24h. The request is sent once.
func (t Tokens) Rotate(ctx context.Context, id, overlap string) (*api.AccessToken, error) {
	made := new(api.AccessToken)
	return made, Identity(t).post(ctx, accessTokenPath(id)+"/rotate", api.RotateOptions{Overlap: overlap}, made)
}

// Revoke ends a token. It returns once each live coordinator refuses the token;
// status.notFollowedBy has the coordinators that did not confirm that within 5 s.
func (t Tokens) Revoke(ctx context.Context, id string) (*api.AccessToken, error) {
	return call[api.AccessToken](ctx, t.client, request{method: http.MethodDelete, path: accessTokenPath(id)})
}
