package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/musterd/muster/api"
)

// Identity is the bootstrap tokens, certificates, authorities and bans of the cluster; all
// of its methods are for admins.
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

// CreateToken makes a bootstrap token; the answer alone has the secret. The request is
// sent once.
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

// RevokeTokenIf is RevokeToken of a token that has the required values; another token is
// left as it is, and the answer is 409.
func (i Identity) RevokeTokenIf(ctx context.Context, id string, require api.Preconditions) (*api.BootstrapToken, error) {
	return removeIf[api.BootstrapToken](ctx, i.client, request{path: tokensPath + "/" + url.PathEscape(id)}, require)
}

// removeIf sends a DELETE with preconditions.
func removeIf[T any](ctx context.Context, c *Client, r request, require api.Preconditions) (*T, error) {
	body, err := json.Marshal(api.DeleteOptions{Preconditions: &require})
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", require, err)
	}
	r.method, r.contentType, r.body = http.MethodDelete, "application/json", body
	return call[T](ctx, c, r)
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
	r := retirement(id, force)
	r.method = http.MethodDelete
	return call[api.AuthorityList](ctx, i.client, r)
}

// RetireAuthorityIf is RetireAuthority of an authority that has the required values;
// otherwise nothing changes, and the answer is 409. All authorities have one
// resourceVersion, which a rotation and a retirement change.
func (i Identity) RetireAuthorityIf(ctx context.Context, id string, force bool, require api.Preconditions) (*api.AuthorityList, error) {
	return removeIf[api.AuthorityList](ctx, i.client, retirement(id, force), require)
}

func retirement(id string, force bool) request {
	r := request{path: authoritiesPath + "/" + url.PathEscape(id)}
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	return r
}

const operatorsPath = "/api/v1/operatorcertificates"

// CertifyOperator asks for an operator's certificate, good for ttl (0: the
// server's default, 12h), by a PKCS #10 request in PEM.
func (i Identity) CertifyOperator(ctx context.Context, name, request string, ttl time.Duration) (*api.OperatorCertificate, error) {
	spec := api.OperatorCertificateSpec{Request: request}
	if ttl != 0 {
		spec.TTL = ttl.String()
	}
	made := new(api.OperatorCertificate)
	return made, i.post(ctx, operatorsPath, api.OperatorCertificate{Metadata: api.ObjectMeta{Name: name}, Spec: spec}, made)
}

// Operators returns the operators' certificates that have not expired.
func (i Identity) Operators(ctx context.Context) (*api.OperatorCertificateList, error) {
	return call[api.OperatorCertificateList](ctx, i.client, request{method: http.MethodGet, path: operatorsPath})
}

// RevokeOperator ends all certificates of an operator and returns them.
func (i Identity) RevokeOperator(ctx context.Context, name string) (*api.OperatorCertificateList, error) {
	return call[api.OperatorCertificateList](ctx, i.client, request{method: http.MethodDelete, path: operatorsPath + "/" + url.PathEscape(name)})
}

// RevokeOperatorIf is RevokeOperator if the operator's certificate that was changed last
// has the required values; otherwise nothing changes, and the answer is 409.
func (i Identity) RevokeOperatorIf(ctx context.Context, name string, require api.Preconditions) (*api.OperatorCertificateList, error) {
	return removeIf[api.OperatorCertificateList](ctx, i.client, request{path: operatorsPath + "/" + url.PathEscape(name)}, require)
}

func banPath(node string) string { return "/api/v1/nodes/" + url.PathEscape(node) + "/ban" }

// BanNode keeps a node id out: its certificate and its connections end. A ban
// that stands is answered as it is.
func (i Identity) BanNode(ctx context.Context, node, reason string) (*api.NodeBan, error) {
	made := new(api.NodeBan)
	return made, i.post(ctx, banPath(node), api.NodeBan{Spec: api.NodeBanSpec{Reason: reason}}, made)
}

// UnbanNode lets a node id enroll again, by a token.
func (i Identity) UnbanNode(ctx context.Context, node string) (*api.NodeBan, error) {
	return call[api.NodeBan](ctx, i.client, request{method: http.MethodDelete, path: banPath(node)})
}

// UnbanNodeIf is UnbanNode of a ban that has the required values; another ban stays, and
// the answer is 409.
func (i Identity) UnbanNodeIf(ctx context.Context, node string, require api.Preconditions) (*api.NodeBan, error) {
	return removeIf[api.NodeBan](ctx, i.client, request{path: banPath(node)}, require)
}

// Bans returns the bans that stand.
func (i Identity) Bans(ctx context.Context) (*api.NodeBanList, error) {
	return call[api.NodeBanList](ctx, i.client, request{method: http.MethodGet, path: "/api/v1/nodebans"})
}
