package enroll_test

import (
	"context"
	"crypto"
	"crypto/x509"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
)

// keyring is a process's gossip keys.
type keyring struct {
	mu   sync.Mutex
	keys [][]byte
}

func (k *keyring) Keys() [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.keys)
}

func (k *keyring) Replace(keys [][]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = slices.Clone(keys)
	return nil
}

const ttl = time.Hour

func open(t testing.TB, s store.Store, id string, change ...func(*enroll.Config)) *enroll.Service {
	t.Helper()
	c := enroll.Config{Cluster: "c", ID: id, Store: s, TTL: ttl, Names: []string{"localhost"}}
	for _, f := range change {
		f(&c)
	}
	e, err := enroll.Open(t.Context(), c, func(keys [][]byte) (enroll.Keyring, error) { return &keyring{keys: keys}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func csr(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := pki.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func token(t testing.TB, e *enroll.Service, o enroll.TokenOptions) pki.Token {
	t.Helper()
	got, _, err := e.CreateToken(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// ask enrolls a node as a host would.
func ask(t testing.TB, e *enroll.Service, text, node string, key crypto.Signer) (*musterv1.EnrollResponse, error) {
	t.Helper()
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+text))
	return e.Enroll(ctx, &musterv1.EnrollRequest{Cluster: "c", NodeId: node, Csr: csr(t, key)})
}

// identity checks an answer as the host does and returns its TLS identity.
func identity(t testing.TB, r *musterv1.EnrollResponse, key crypto.Signer) *rpcauth.TLS {
	t.Helper()
	parse := func(ders [][]byte) []*x509.Certificate {
		list, err := pki.ParseCertificates(ders)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	p, err := rpcauth.NewTLS(rpcauth.Material{Chain: parse(r.GetChain()), Key: key, Roots: parse(r.GetAuthorities())})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// renew asks over mutual TLS for a certificate for key.
func renew(t testing.TB, e *enroll.Service, as *rpcauth.TLS, key crypto.Signer) (*musterv1.EnrollResponse, error) {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	server := grpc.NewServer(rpcauth.Server(e.TLS(), rpcauth.CoordinatorRules())...)
	musterv1.RegisterEnrollmentServer(server, e)
	go server.Serve(l)
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:///c", append(as.DialOptions(rpcauth.AnyCoordinator()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return musterv1.NewEnrollmentClient(conn).Renew(t.Context(), &musterv1.RenewRequest{Csr: csr(t, key)})
}
