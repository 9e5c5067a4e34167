package etcd

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/etcdcluster"
)

// TestCertificatesAreReadAgain: both sides' certificates are replaced, and the
// authority with them, without a restart; files that cannot be used do not
// count.
func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	files := TLS{CAFile: filepath.Join(dir, "ca"), CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key")}
	client := newFileCredentials(files, slog.New(slog.DiscardHandler))
	install := func(a *etcdcluster.Authority) {
		t.Helper()
		a.IssueTo(t, etcdcluster.Leaf{Name: "client"}, files.CertFile, files.KeyFile)
		text, err := os.ReadFile(a.File)
		if err == nil {
			err = os.WriteFile(files.CAFile, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first, second := etcdcluster.NewAuthority(t, filepath.Join(dir, "first")), etcdcluster.NewAuthority(t, filepath.Join(dir, "second"))
	if _, _, err := client.ClientHandshake(t.Context(), "127.0.0.1:1", nil); err == nil {
		t.Error("a handshake without files")
	}
	install(first)
	before := handshake(t, client, first)
	if again := handshake(t, client, first); again != before {
		t.Errorf("certificate %s after %s: nothing was replaced", again, before)
	}
	install(second)
	after := handshake(t, client, second)
	if after == before {
		t.Errorf("certificate %s was shown after it had been replaced", after)
	}
	if err := os.WriteFile(files.KeyFile, []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := handshake(t, client, second); got != after {
		t.Errorf("certificate %s while the files are being replaced, want the last good one %s", got, after)
	}
}

// handshake connects to a server of an authority and returns the fingerprint
// of the certificate that it was shown.
func handshake(t *testing.T, client fileCredentials, a *etcdcluster.Authority) string {
	t.Helper()
	cert, key := a.Issue(t, etcdcluster.Leaf{Name: "server", Hosts: []string{"127.0.0.1"}})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(a.File)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	server := tls.Server(there, &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"},
	})
	var wg sync.WaitGroup
	var serverErr error
	wg.Go(func() { serverErr = server.HandshakeContext(t.Context()) })
	_, _, err = client.ClientHandshake(t.Context(), "127.0.0.1:2379", here)
	if err != nil {
		_ = here.Close()
	}
	wg.Wait()
	if err := errors.Join(err, serverErr); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.8x", sha256.Sum256(server.ConnectionState().PeerCertificates[0].Raw))
}

// TestTxnIsSentOnce: after any answer of a server, clientv3 must not send a
// transaction again.
func TestTxnIsSentOnce(t *testing.T) {
	for name, answer := range map[string]error{
		"the server ran out of time":        status.Error(codes.DeadlineExceeded, "context deadline exceeded"),
		"the server's call was canceled":    status.Error(codes.Canceled, "context canceled"),
		"the server has lost its leader":    status.Error(codes.Unavailable, "etcdserver: leader changed"),
		"the server says no more than that": status.Error(codes.Unknown, "oops"),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			counting := &counter{answer: answer}
			server := grpc.NewServer()
			pb.RegisterKVServer(server, counting)
			var wg sync.WaitGroup
			wg.Go(func() { _ = server.Serve(l) })
			defer wg.Wait()
			defer server.Stop()
			h := newHistory()
			client, err := dial(Config{Endpoints: []string{l.Addr().String()}}.withDefaults(), h, func() {})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = closeClient(client) }()
			s := bare(t, pb.NewKVClient(client.ActiveConnection()))
			s.conn, s.requestTimeout = client.ActiveConnection(), 20*time.Second
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			_, err = s.Txn(ctx, record.Txn{Then: []record.Op{record.Put("/registry/a", nil)}})
			if n := counting.txns.Load(); n != 1 || !errors.Is(err, record.ErrUnknownOutcome) {
				t.Errorf("sent %d times, %v; want once and an unknown outcome", n, err)
			}
		})
	}
}

// counter answers reads, and transactions with an error.
type counter struct {
	pb.UnimplementedKVServer
	answer error
	txns   atomic.Int64
}

func (c *counter) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}, nil
}

func (c *counter) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	c.txns.Add(1)
	return nil, c.answer
}
