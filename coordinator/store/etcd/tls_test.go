package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
)

// TestTLS: the certificates of both sides are checked.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, pair, pool := selfSigned(t, dir)
	endpoint := serve(t, func(c *embed.Config) {
		c.ListenClientUrls[0].Scheme = "https"
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = certFile, keyFile
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = certFile, true
	})
	s := connect(t, etcd.Config{Endpoints: []string{endpoint}, TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}, 128)
	defer func() { _ = s.Close() }()
	if r, err := s.Txn(within(t), store.Txn{Then: []store.Op{store.Put("/registry/a", nil)}}); err != nil || !r.Succeeded {
		t.Errorf("transaction: %+v, %v", r, err)
	}
	refused := map[string]*tls.Config{
		"a client without certificate": {RootCAs: pool},
		"a server nobody vouches for":  {RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}},
	}
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			if s, err := etcd.Connect(ctx, etcd.Config{Endpoints: []string{endpoint}, TLS: c}); err == nil {
				_ = s.Close()
				t.Error("connected")
			}
		})
	}
}

// selfSigned makes one certificate for both sides, which vouches for itself.
func selfSigned(t *testing.T, dir string) (certFile, keyFile string, pair tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, text := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pair, pool
}
