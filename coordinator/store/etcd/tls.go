package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// TLS names the files of a connection's certificates. They are read at every
// handshake, so that a file that is replaced counts from the next connection
// on. The zero value trusts the host's roots and shows no certificate.
type TLS struct {
	// CAFile vouches for the servers, PEM; empty is the host's own trust.
	CAFile string
	// CertFile and KeyFile are this side's, PEM; both or none.
	CertFile, KeyFile string
	// ServerName is expected in the servers' certificates instead of the
	// endpoint's host.
	ServerName string
}

// config reads the files. An error names the configuration's field, and the
// file.
func (t TLS) config(now time.Time) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("etcdTLS.caFile: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("etcdTLS.caFile: %s holds no PEM certificate", t.CAFile)
		}
	}
	switch {
	case t.CertFile == "" && t.KeyFile == "":
		return c, nil
	case t.KeyFile == "":
		return nil, fmt.Errorf("etcdTLS.keyFile: not set; it holds the key of etcdTLS.certFile %s", t.CertFile)
	case t.CertFile == "":
		return nil, fmt.Errorf("etcdTLS.certFile: not set; it holds the certificate of etcdTLS.keyFile %s", t.KeyFile)
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("etcdTLS.certFile %s with etcdTLS.keyFile %s: %w", t.CertFile, t.KeyFile, err)
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("etcdTLS.certFile: %s expired at %s: issue a new one", t.CertFile, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if now.Before(pair.Leaf.NotBefore) {
		return nil, fmt.Errorf("etcdTLS.certFile: %s is not valid before %s: check this host's clock", t.CertFile, pair.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	// Always the one certificate: a server that does not accept it then names
	// the reason, where without one it only asks for one.
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return c, nil
}

// fileCredentials reads the files anew for every connection. While they cannot
// be used, e.g. because a key was replaced and its certificate not yet, the
// last good ones count.
type fileCredentials struct {
	files TLS
	log   *slog.Logger

	mu   *sync.Mutex
	last **tls.Config // shared by clones
}

func newFileCredentials(t TLS, log *slog.Logger) fileCredentials {
	return fileCredentials{files: t, log: log, mu: new(sync.Mutex), last: new(*tls.Config)}
}

func (f fileCredentials) config() (*tls.Config, error) {
	c, err := f.files.config(time.Now())
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		*f.last = c
	case *f.last == nil:
		return nil, err
	default:
		f.log.Warn("etcd_certificates_not_usable", "error", err, "do", "the ones read before are used")
	}
	return (*f.last).Clone(), nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (f fileCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, err := f.config()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(c).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake is never used.
func (f fileCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these are a client's credentials")
}

// Info implements credentials.TransportCredentials.
func (f fileCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (f fileCredentials) Clone() credentials.TransportCredentials { return f }

// OverrideServerName implements credentials.TransportCredentials.
func (f fileCredentials) OverrideServerName(string) error {
	return errors.New("set etcdTLS.serverName instead")
}
