package rpcauth

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/musterd/muster/netlimit"
	"github.com/musterd/muster/pki"
)

// Material holds a party's own proof and the means to judge others. It is
// immutable.
type Material struct {
	// Chain is the party's own certificate, then the intermediates by which
	// others find a root they trust.
	Chain []*x509.Certificate
	Key   crypto.Signer
	// Roots are the authorities that the party trusts.
	Roots pki.Bundle
}

// TLS is a Member by certificate: TLS 1.3, both ends show theirs. The material
// may be replaced at any time; new connections take the newest. An open
// connection ends when the peer's certificate expires, when its authority is no
// longer trusted, and when the Judge no longer accepts the peer. TLS may be used
// by several goroutines.
type TLS struct {
	own    pki.Identity
	state  atomic.Pointer[state]
	judge  Judge
	closed func(peer Caller, reason error) // nil: connections end silently
	open   connections
}

type state struct {
	Material
	certificate tls.Certificate
}

// NewTLS checks that the material proves an identity to parties that trust the
// same roots, now.
func NewTLS(m Material) (*TLS, error) {
	s, own, err := check(m)
	if err != nil {
		return nil, err
	}
	t := &TLS{own: own, judge: everybody{}}
	t.state.Store(s)
	return t, nil
}

func check(m Material) (*state, pki.Identity, error) {
	own, err := pki.Verify(m.Chain, m.Roots, time.Now(), pki.AsClient)
	if err != nil {
		return nil, own, err
	}
	public, ok := m.Chain[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || m.Key == nil || !public.Equal(m.Key.Public()) {
		return nil, own, fmt.Errorf("certificate of %s: the private key is another's", own)
	}
	return &state{Material: m, certificate: tls.Certificate{Certificate: pki.Raw(m.Chain), PrivateKey: m.Key, Leaf: m.Chain[0]}}, own, nil
}

// Replace takes new material of the same identity. Open connections whose peers
// have a certificate of an authority that is no longer trusted end.
func (t *TLS) Replace(m Material) error {
	s, own, err := check(m)
	if err != nil {
		return err
	}
	if own != t.own {
		return fmt.Errorf("certificate of %s cannot replace that of %s", own, t.own)
	}
	before := t.state.Swap(s)
	if !slices.EqualFunc(before.Roots, m.Roots, (*x509.Certificate).Equal) {
		t.open.sweep(func(Caller) bool { return true }, t.trusted, t.closed)
	}
	return nil
}

// Identity is whose certificate this is.
func (t *TLS) Identity() pki.Identity { return t.own }

// Material is the newest material.
func (t *TLS) Material() Material { return t.state.Load().Material }

// IsZero implements Member.
func (t *TLS) IsZero() bool { return t == nil }

// CheckAddress takes every address of the form host:port.
func (t *TLS) CheckAddress(field, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%s: address %q: want HOST:PORT", field, address)
	}
	return nil
}

// base is the configuration that both ends share.
func (t *TLS) base() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true}
}

// ServerConfig is for servers of the cluster's own protocols. It asks for a
// certificate and takes any: a client that shows none, or a bad one, learns so
// from the call's status.
func (t *TLS) ServerConfig() *tls.Config {
	c := t.base()
	c.ClientAuth = tls.RequestClientCert
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &t.state.Load().certificate, nil }
	return c
}

// WebConfig is for HTTP: it shows the certificate, asks for none, and takes TLS
// 1.2 as well.
func (t *TLS) WebConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &t.state.Load().certificate, nil },
	}
}

// APIConfig is a WebConfig that asks for a certificate, and takes any and none: the
// requests of the connection are judged one by one.
func (t *TLS) APIConfig() *tls.Config {
	c := t.WebConfig()
	c.ClientAuth = tls.RequestClientCert
	c.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
		bytes := 0
		for _, one := range raw {
			bytes += len(one)
		}
		if bytes > maxWebChain {
			return fmt.Errorf("client certificates of %d bytes, at most %d", bytes, maxWebChain)
		}
		return nil
	}
	return c
}

// maxWebChain bounds the certificates that a client of HTTP shows, in bytes: a connection
// keeps them.
const maxWebChain = 16 << 10

// ClientConfig is for clients that mean to reach want: the other end's identity
// decides, not its host name.
func (t *TLS) ClientConfig(want Want) *tls.Config {
	c := t.base()
	c.InsecureSkipVerify = true // VerifyConnection verifies, by identity
	c.VerifyConnection = func(s tls.ConnectionState) error {
		got, err := pki.Verify(s.PeerCertificates, t.state.Load().Roots, time.Now(), pki.AsServer)
		if err != nil {
			return err
		}
		return t.expect(want, got)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &t.state.Load().certificate, nil }
	return c
}

// expect compares the present party with the intended one.
func (t *TLS) expect(want Want, got pki.Identity) error {
	switch {
	case got.Cluster != t.own.Cluster:
		return fmt.Errorf("this is %s, of another cluster than %s", got, t.own)
	case got.Role != want.Role || (want.ID != "" && got.ID != want.ID):
		wanted := "any " + string(want.Role)
		if want.ID != "" {
			wanted = string(want.Role) + " " + want.ID
		}
		return fmt.Errorf("this is %s, not %s", got, wanted)
	}
	return nil
}

// DialOptions implements Member.
func (t *TLS) DialOptions(want Want) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithTransportCredentials(transport{tls: t, want: want})}
}

// transport is the handshake of one kind of connection.
type transport struct {
	tls  *TLS
	want Want
}

// info is the result of a handshake; err is the reason why the other end proved
// nothing.
type info struct {
	credentials.TLSInfo
	caller Caller
	err    error
	conn   *netlimit.Conn // nil where the listener has no limits
	below  net.Conn       // under the TLS: its Close does not wait for the peer
}

// ClientHandshake implements credentials.TransportCredentials.
func (t transport) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	want := t.want
	if want.Role == pki.Node && want.ID == "" {
		want.ID = authority
	}
	below, watched := t.tls.open.watch(conn)
	secure, auth, err := credentials.NewTLS(t.tls.ClientConfig(want)).ClientHandshake(ctx, authority, below)
	if err != nil {
		return nil, nil, err
	}
	found, ok := auth.(credentials.TLSInfo)
	if !ok {
		return nil, nil, errors.Join(fmt.Errorf("handshake: got %T", auth), secure.Close())
	}
	trust := t.tls.state.Load()
	server, err := callerOf(found.State.PeerCertificates, trust.Roots, pki.AsServer)
	if err == nil {
		t.tls.keep(watched, server, trust) // before the judge is asked: a change after its answer ends the connection
		err = t.tls.judge.Admit(ctx, server)
	}
	if err != nil {
		_ = watched.Close() // not secure.Close: it may wait for the peer
		return nil, nil, fmt.Errorf("%s: %w", server.Identity, err)
	}
	return secure, auth, nil
}

// keep notes an open connection, which ends with its peer's certificate. The
// chain was verified by trust; where that was replaced meanwhile it is verified
// again, since the sweep of Replace may have missed the connection.
func (t *TLS) keep(w *watched, peer Caller, trust *state) {
	t.open.add(w, peer, func(peer Caller) {
		if t.closed != nil {
			t.closed(peer, t.current(peer))
		}
	})
	if t.state.Load() != trust && t.trusted(peer) != nil {
		_ = w.Close() // its reader gets the error
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (t transport) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	below, watched := t.tls.open.watch(conn)
	secure, auth, err := credentials.NewTLS(t.tls.ServerConfig()).ServerHandshake(below)
	if err != nil {
		return nil, nil, err
	}
	found, ok := auth.(credentials.TLSInfo)
	if !ok {
		return nil, nil, errors.Join(fmt.Errorf("handshake: got %T", auth), secure.Close())
	}
	i := info{TLSInfo: found, below: watched}
	trust := t.tls.state.Load()
	if i.caller, i.err = callerOf(found.State.PeerCertificates, trust.Roots, pki.AsClient); i.err == nil {
		t.tls.keep(watched, i.caller, trust) // its calls are judged one by one
	}
	return secure, i, nil
}

// Info implements credentials.TransportCredentials.
func (t transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (t transport) Clone() credentials.TransportCredentials { return t }

// OverrideServerName implements credentials.TransportCredentials: names decide
// nothing here.
func (t transport) OverrideServerName(string) error { return nil }

// Caller is the other end of a connection, proven by its certificate.
type Caller struct {
	Identity    pki.Identity
	Certificate *x509.Certificate
	chain       []*x509.Certificate // as it was shown
	use         x509.ExtKeyUsage
}

// callerOf verifies a chain. The identity is set on errors too where it is
// known.
func callerOf(shown []*x509.Certificate, roots pki.Bundle, use x509.ExtKeyUsage) (Caller, error) {
	identity, err := pki.Verify(shown, roots, time.Now(), use)
	if err != nil {
		return Caller{Identity: identity}, err
	}
	return Caller{Identity: identity, Certificate: shown[0], chain: shown, use: use}, nil
}

// CallerOf returns the party that made a call over TLS; an error gives the
// reason why it is unknown.
func CallerOf(ctx context.Context) (Caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Caller{}, errors.New("the call has no connection")
	}
	i, ok := p.AuthInfo.(info)
	if !ok {
		return Caller{}, errors.New("the connection has no TLS")
	}
	return i.caller, i.err
}

func (t *TLS) serverOptions(rules Rules) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(limited{transport{tls: t}}), t.gate(rules).option(),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, call *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			rule, err := rules.admit(ctx, call.FullMethod, t.own)
			if err == nil {
				err = t.admitted(ctx, rule, call.FullMethod)
			}
			if err == nil {
				err = rule.checkNode(ctx, call.FullMethod, req)
			}
			if err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, call *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			rule, err := rules.admit(stream.Context(), call.FullMethod, t.own)
			if err == nil {
				err = t.admitted(stream.Context(), rule, call.FullMethod)
			}
			if err != nil {
				return err
			}
			return next(srv, &judged{ServerStream: stream, tls: t, rule: rule, method: call.FullMethod})
		}),
	}
}

// judged checks each message of a stream, and its sender, anew.
type judged struct {
	grpc.ServerStream
	tls    *TLS
	rule   Rule
	method string
}

// RecvMsg implements grpc.ServerStream.
func (j *judged) RecvMsg(m any) error {
	if err := j.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if err := j.tls.holds(j.Context(), j.method); err != nil {
		return err
	}
	return j.rule.checkNode(j.Context(), j.method, m)
}
