package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Trust is a TLS configuration for servers that the authorities in a PEM file
// vouch for, and no others; nil, the system's authorities, where path is "".
func Trust(path string) (*tls.Config, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("certificate authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("certificate authorities: %s holds no PEM certificate", path)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}

// Certificate is a client certificate: the PEM files of the certificate with its
// intermediate authorities, and of its key. The zero value is none.
type Certificate struct {
	CertFile string
	// KeyFile is "" where CertFile has the key too. Others may not read the file.
	KeyFile string
}

// AddTo adds the certificate to a configuration, nil for the zero one, and returns it.
// The zero certificate adds nothing.
func (c Certificate) AddTo(config *tls.Config) (*tls.Config, error) {
	if c.CertFile == "" {
		if c.KeyFile != "" {
			return nil, fmt.Errorf("client certificate: the key %s is given without the certificate", c.KeyFile)
		}
		return config, nil
	}
	key := c.KeyFile
	if key == "" {
		key = c.CertFile
	}
	info, err := os.Stat(key)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("client certificate: the key in %s: mode %04o lets others use it; run: chmod 0600 %[1]s", key, mode)
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s, key %s: %w", c.CertFile, key, err)
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	// Each server gets the certificate, so that one of another cluster can word its refusal.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return config, nil
}
