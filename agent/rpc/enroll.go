package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// DirectiveRenew asks the agent to fetch its new credentials: authorities, its
// certificate, gossip keys. The message is the fingerprint that it will have
// then (pki.Fingerprint).
const DirectiveRenew = "renew"

// DirectiveRenewNow is DirectiveRenew in a message that answers no heartbeat.
const DirectiveRenewNow = "renew_now"

// Certified is a coordinator's answer to an enrolment or a renewal:
// certificates in DER.
type Certified struct {
	Chain       [][]byte // its certificate first
	Authorities [][]byte
	GossipKeys  [][]byte // none where the rings are in plain text
	Revoked     []string // keys of operators to refuse (pki.KeyHash), in order
}

// ErrRefused means that asking again will not help: the token or the node id
// is not accepted.
var ErrRefused = errors.New("refused")

// Enroll asks the coordinators at these addresses, one after the other, to
// certify node's key by a bootstrap token. It believes only a coordinator of
// the cluster whose authority the token names. Errors that wrap ErrRefused are
// final.
func Enroll(ctx context.Context, addresses []string, cluster string, node resource.NodeID, token pki.Token, csr []byte, dialer Dialer) (Certified, error) {
	if len(addresses) == 0 {
		return Certified{}, fmt.Errorf("enroll %s: %w", node, ErrNoCoordinator)
	}
	var errs []error
	for _, address := range addresses {
		got, err := enroll(ctx, address, cluster, node, token, csr, dialer)
		if err == nil {
			return got, nil
		}
		err = fmt.Errorf("enroll %s: coordinator %s: %w", node, address, err)
		if refusal(err) {
			return Certified{}, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		errs = append(errs, err)
	}
	return Certified{}, errors.Join(errs...)
}

func refusal(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated, codes.AlreadyExists, codes.Unimplemented:
		return true
	}
	return false
}

// IsNotAccepted reports whether a coordinator refused a call because of this
// node's certificate: it was replaced, its node was deleted, or is banned. Of
// several coordinators one is enough.
func IsNotAccepted(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // of a wrapped one the branch below sees the inside
		return slices.ContainsFunc(joined.Unwrap(), IsNotAccepted)
	}
	if inside := errors.Unwrap(err); inside != nil {
		return IsNotAccepted(inside)
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return true
	}
	return false
}

func enroll(ctx context.Context, address, cluster string, node resource.NodeID, token pki.Token, csr []byte, dialer Dialer) (Certified, error) {
	options := append(limits.DialOptions(),
		grpc.WithTransportCredentials(credentials.NewTLS(pinned(cluster, token.Pin))),
		grpc.WithPerRPCCredentials(bearer{token}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limits.MaxRegister)),
	)
	if dialer != nil {
		options = append(options, grpc.WithContextDialer(dialer))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return Certified{}, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := musterv1.NewEnrollmentClient(conn).Enroll(ctx, &musterv1.EnrollRequest{Cluster: cluster, NodeId: string(node), Csr: csr})
	if err != nil {
		return Certified{}, err
	}
	return certified(r), nil
}

// pinned trusts a coordinator whose chain leads to the pinned authority.
func pinned(cluster string, pin pki.Pin) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection verifies, by pin and identity
		VerifyConnection: func(s tls.ConnectionState) error {
			roots, err := pki.Pinned(s.PeerCertificates, pin)
			if err != nil {
				return err
			}
			got, err := pki.Verify(s.PeerCertificates, roots, time.Now(), pki.AsServer)
			switch {
			case err != nil:
				return err
			case got.Cluster != cluster || got.Role != pki.Coordinator:
				return fmt.Errorf("this is %s, not a coordinator of cluster %q", got, cluster)
			}
			return nil
		},
	}
}

// bearer puts a bootstrap token on a call. The connection is TLS to the pinned
// authority's coordinator, or there is no call.
type bearer struct{ token pki.Token }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token.Text()}, nil
}

func (b bearer) RequireTransportSecurity() bool { return true }

// Renew asks a coordinator for another certificate, by the present one.
func (c *Coordinators) Renew(ctx context.Context, csr []byte) (Certified, error) {
	var got Certified
	err := c.each(ctx, "renew the certificate", func(ctx context.Context, conn *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		r, err := musterv1.NewEnrollmentClient(conn).Renew(ctx, &musterv1.RenewRequest{Csr: csr})
		got = certified(r)
		return err
	})
	if err != nil {
		return Certified{}, err
	}
	return got, nil
}

func certified(r *musterv1.EnrollResponse) Certified {
	return Certified{Chain: r.GetChain(), Authorities: r.GetAuthorities(), GossipKeys: r.GetGossipKeys(), Revoked: r.GetRevokedKeys()}
}
