package service

import (
	"context"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
)

// ErrNoIdentity refuses where a coordinator has no Identity.
var ErrNoIdentity = api.Errorf(http.StatusNotImplemented, "this coordinator runs without TLS, so there are no identities: set tls.enabled")

// Identity manages the cluster's certificates, tokens and bans. Any coordinator
// serves it, leader or not. All methods return an *api.Status as error for
// every refusal.
type Identity interface {
	// PutBootstrapToken makes a token; ttl 0 is the default. The answer alone
	// carries it.
	PutBootstrapToken(ctx context.Context, t *api.BootstrapToken, ttl time.Duration, creator string) (*api.BootstrapToken, error)
	ListBootstrapTokens(ctx context.Context) (*api.BootstrapTokenList, error)
	DeleteBootstrapToken(ctx context.Context, id string, require api.Preconditions) (*api.BootstrapToken, error)

	// AdmitCreation judges the bootstrap token of a host that creates its own node, and
	// returns the token's id. from is the address of the host.
	AdmitCreation(ctx context.Context, token, node, from string) (id string, err error)

	ListAuthorities(ctx context.Context) (*api.AuthorityList, error)
	// RotateAuthority makes a new authority, which signs from now on.
	RotateAuthority(ctx context.Context) (*api.Authority, error)
	// RetireAuthority ends the trust in one, refused with 409 while nodes have
	// certificates by it, unless forced.
	RetireAuthority(ctx context.Context, id string, force bool, require api.Preconditions) error

	// CertifyOperator certifies an operator; ttl 0 is the default.
	CertifyOperator(ctx context.Context, c *api.OperatorCertificate, ttl time.Duration, creator string) (*api.OperatorCertificate, error)
	ListOperators(ctx context.Context) (*api.OperatorCertificateList, error)
	// RevokeOperator ends all certificates of an operator and lists them. The certificate
	// that was changed last has to meet the preconditions.
	RevokeOperator(ctx context.Context, name, by string, require api.Preconditions) (*api.OperatorCertificateList, error)

	// BanNode keeps a node id out until UnbanNode, even with a good
	// certificate.
	BanNode(ctx context.Context, node, reason, by string) (*api.NodeBan, error)
	UnbanNode(ctx context.Context, node, by string, require api.Preconditions) (*api.NodeBan, error)
	ListBans(ctx context.Context) (*api.NodeBanList, error)
}
