package sdk

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
)

// WhoAmI returns the caller as the server knows the caller: the user, the proof, the
// groups, the tenant and the roles in force.
func (c *Client) WhoAmI(ctx context.Context) (*api.WhoAmI, error) {
	return call[api.WhoAmI](ctx, c, request{method: http.MethodGet, path: "/api/v1/whoami"})
}

// LoginMethod returns the identity provider that people log in at. The request needs no
// token. A cluster without a provider answers 404.
func (c *Client) LoginMethod(ctx context.Context) (*api.LoginMethod, error) {
	return call[api.LoginMethod](ctx, c, request{method: http.MethodGet, path: "/api/v1/login"})
}
