package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/musterd/muster/api"
)

// Identity is who is who in the cluster; all of it is for admins.
type Identity struct{ client *Client }

// Identity selects it.
func (c *Client) Identity() Identity { return Identity{c} }

func (i Identity) post(ctx context.Context, path string, document, into any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode %T: %w", document, err)
	}
	answer, err := i.client.send(ctx, request{method: http.MethodPost, path: path, contentType: "application/json", body: body})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("POST %s: the answer is not what was asked for: %w", path, err)
	}
	return nil
}

const (
	tokensPath      = "/api/v1/bootstraptokens"
	authoritiesPath = "/api/v1/authorities"
)

// CreateToken makes a bootstrap token; the answer alone tells it. It is sent
// once.
func (i Identity) CreateToken(ctx context.Context, spec api.BootstrapTokenSpec) (*api.BootstrapToken, error) {
	made := new(api.BootstrapToken)
	return made, i.post(ctx, tokensPath, api.BootstrapToken{Spec: spec}, made)
}

// ListTokens returns all tokens, without their secrets.
func (i Identity) ListTokens(ctx context.Context) (*api.BootstrapTokenList, error) {
	return call[api.BootstrapTokenList](ctx, i.client, request{method: http.MethodGet, path: tokensPath})
}

// RevokeToken ends a token. Nodes that it has let in stay.
func (i Identity) RevokeToken(ctx context.Context, id string) (*api.BootstrapToken, error) {
	return call[api.BootstrapToken](ctx, i.client, request{method: http.MethodDelete, path: tokensPath + "/" + url.PathEscape(id)})
}

// Authorities returns the roots of trust.
func (i Identity) Authorities(ctx context.Context) (*api.AuthorityList, error) {
	return call[api.AuthorityList](ctx, i.client, request{method: http.MethodGet, path: authoritiesPath})
}

// RotateAuthority makes a new root, which signs from then on. It is sent once.
func (i Identity) RotateAuthority(ctx context.Context) (*api.Authority, error) {
	made := new(api.Authority)
	return made, i.post(ctx, authoritiesPath, struct{}{}, made)
}

// RetireAuthority ends the trust in a root; force does so although nodes have
// certificates by it.
func (i Identity) RetireAuthority(ctx context.Context, id string, force bool) (*api.AuthorityList, error) {
	r := request{method: http.MethodDelete, path: authoritiesPath + "/" + url.PathEscape(id)}
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	return call[api.AuthorityList](ctx, i.client, r)
}

// CertifyOperator asks for an operator's certificate by a PKCS #10 request in
// PEM.
func (i Identity) CertifyOperator(ctx context.Context, name, request string) (*api.OperatorCertificate, error) {
	made := new(api.OperatorCertificate)
	return made, i.post(ctx, "/api/v1/operatorcertificates", api.OperatorCertificate{
		Metadata: api.ObjectMeta{Name: name}, Spec: api.OperatorCertificateSpec{Request: request},
	}, made)
}
