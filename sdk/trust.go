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
