package service

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"strings"
)

// Proofs are the parts of a request that prove the name of its caller.
type Proofs struct {
	// Authorization are the headers of that name.
	Authorization []string
	// Chain is the client certificate of the connection, and the certificates that came
	// with it.
	Chain []*x509.Certificate
	// PassedOn names the client certificate of the caller, where a coordinator has passed
	// the request on (CertificateName); "" for none. It counts if Chain is that of a
	// coordinator.
	PassedOn string
}

// Certified is an Authenticator that knows client certificates too.
type Certified interface {
	Authenticator
	// AuthenticateCertificate turns the certificates of a connection into a principal.
	// passedOn is Proofs.PassedOn.
	AuthenticateCertificate(chain []*x509.Certificate, passedOn string) (Principal, error)
}

// ChainOf are the certificates that the other end of a connection has shown.
func ChainOf(c *tls.ConnectionState) []*x509.Certificate {
	if c == nil {
		return nil
	}
	return c.PeerCertificates
}

func (p Proofs) hasToken() bool { return len(p.Authorization) > 0 && p.Authorization[0] != "" }

// Certificate names the client certificate that proves the caller, for the coordinator that
// the request is passed on to; "" where a token proves the caller.
func (p Proofs) Certificate() string {
	if p.hasToken() || len(p.Chain) == 0 {
		return ""
	}
	return CertificateName(p.Chain[0])
}

// CertificateName names a client certificate between coordinators: ID.SHA256, the id of
// its access token and the digest of the certificate.
func CertificateName(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return c.Subject.CommonName + "." + hex.EncodeToString(sum[:])
}

// ParseCertificateName is the inverse of CertificateName.
func ParseCertificateName(name string) (id string, sum [sha256.Size]byte, ok bool) {
	id, digits, found := strings.Cut(name, ".")
	raw, err := hex.DecodeString(digits)
	if !found || err != nil || len(raw) != len(sum) {
		return "", sum, false
	}
	return id, [sha256.Size]byte(raw), true
}
