package resttest

import (
	"context"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
)

// Identities answers every request about identities with one of its kind.
type Identities struct{}

// identity is the metadata of every identity of a name.
func identity(name string) api.ObjectMeta {
	return api.ObjectMeta{Name: name, UID: "uid-" + name, ResourceVersion: "7"}
}

func judged(require api.Preconditions, kind string, m api.ObjectMeta) error {
	if status := require.Check(kind+" "+m.Name, m); status != nil {
		return status
	}
	return nil
}

// PutBootstrapToken implements service.Identity.
func (Identities) PutBootstrapToken(_ context.Context, t *api.BootstrapToken, _ time.Duration, _ string) (*api.BootstrapToken, error) {
	return t, nil
}

// ListBootstrapTokens implements service.Identity.
func (Identities) ListBootstrapTokens(context.Context) (*api.BootstrapTokenList, error) {
	return &api.BootstrapTokenList{Items: []api.BootstrapToken{}}, nil
}

// DeleteBootstrapToken implements service.Identity.
func (Identities) DeleteBootstrapToken(_ context.Context, id string, require api.Preconditions) (*api.BootstrapToken, error) {
	made := &api.BootstrapToken{Metadata: identity(id)}
	return made, judged(require, "bootstrap token", made.Metadata)
}

// AdmitCreation implements service.Identity.
func (Identities) AdmitCreation(_ context.Context, token, node, _ string) (string, error) {
	if token != api.BootstrapTokenPrefix+node {
		return "", api.Errorf(http.StatusForbidden, "bootstrap token is not for %q", node)
	}
	return "id", nil
}

// ListAuthorities implements service.Identity.
func (Identities) ListAuthorities(context.Context) (*api.AuthorityList, error) {
	return &api.AuthorityList{Items: []api.Authority{}}, nil
}

// RotateAuthority implements service.Identity.
func (Identities) RotateAuthority(context.Context) (*api.Authority, error) {
	return &api.Authority{}, nil
}

// RetireAuthority implements service.Identity.
func (Identities) RetireAuthority(_ context.Context, id string, _ bool, require api.Preconditions) error {
	return judged(require, "authority", identity(id))
}

// CertifyOperator implements service.Identity.
func (Identities) CertifyOperator(_ context.Context, c *api.OperatorCertificate, _ time.Duration, _ string) (*api.OperatorCertificate, error) {
	return c, nil
}

// ListOperators implements service.Identity.
func (Identities) ListOperators(context.Context) (*api.OperatorCertificateList, error) {
	return &api.OperatorCertificateList{Items: []api.OperatorCertificate{}}, nil
}

// RevokeOperator implements service.Identity.
func (Identities) RevokeOperator(_ context.Context, name, _ string, require api.Preconditions) (*api.OperatorCertificateList, error) {
	return &api.OperatorCertificateList{Items: []api.OperatorCertificate{}}, judged(require, "operator", identity(name))
}

// BanNode implements service.Identity.
func (Identities) BanNode(_ context.Context, node, reason, by string) (*api.NodeBan, error) {
	return &api.NodeBan{Metadata: api.ObjectMeta{Name: node}, Spec: api.NodeBanSpec{Reason: reason}, Status: api.NodeBanStatus{Banned: true, By: by}}, nil
}

// UnbanNode implements service.Identity.
func (Identities) UnbanNode(_ context.Context, node, _ string, require api.Preconditions) (*api.NodeBan, error) {
	return &api.NodeBan{Metadata: identity(node)}, judged(require, "ban", identity(node))
}

// ListBans implements service.Identity.
func (Identities) ListBans(context.Context) (*api.NodeBanList, error) {
	return &api.NodeBanList{Items: []api.NodeBan{}}, nil
}
