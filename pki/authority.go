package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// Backdate is how far in the past certificates begin, for clocks that go
	// behind the authority's.
	Backdate = 5 * time.Minute
	// RootTTL is how long a built-in authority is good for.
	RootTTL = 10 * 365 * 24 * time.Hour
)

// Authority signs certificates: its own and the key to it.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
	// Cross are certificates of this authority's key by earlier authorities:
	// with them in a chain, a party that trusts an earlier authority trusts this authority.
	Cross []*x509.Certificate
}

// NewKey draws a private key.
func NewKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("draw a private key: %w", err)
	}
	return key, nil
}

// NewAuthority makes a root for a cluster, good for RootTTL from now.
func NewAuthority(cluster string, now time.Time) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	template, err := rootTemplate(cluster, key.Public(), now)
	if err != nil {
		return nil, err
	}
	c, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Authority{Certificate: c, Key: key}, nil
}

// Succeed makes the root that takes over from a: its key is also certified by
// a's, so that parties without the new root accept its signatures.
func (a *Authority) Succeed(cluster string, now time.Time) (*Authority, error) {
	next, err := NewAuthority(cluster, now)
	if err != nil {
		return nil, err
	}
	template, err := rootTemplate(cluster, next.Key.Public(), now)
	if err != nil {
		return nil, err
	}
	template.NotAfter = a.Certificate.NotAfter
	template.Subject, template.SubjectKeyId = next.Certificate.Subject, next.Certificate.SubjectKeyId
	cross, err := sign(template, a.Certificate, next.Key.Public(), a.Key)
	if err != nil {
		return nil, err
	}
	next.Cross = append([]*x509.Certificate{cross}, a.Cross...)
	return next, nil
}

func rootTemplate(cluster string, public crypto.PublicKey, now time.Time) (*x509.Certificate, error) {
	id, err := keyID(public)
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: "muster " + cluster + " " + hex.EncodeToString(id[:4])},
		NotBefore: now.Add(-Backdate), NotAfter: now.Add(RootTTL),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: id,
	}, nil
}

// keyID is the first 20 bytes of the SHA-256 of a public key.
func keyID(public crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return sum[:20], nil
}

// ID names an authority: its key's identifier in hex.
func (a *Authority) ID() string { return hex.EncodeToString(a.Certificate.SubjectKeyId) }

// ParseAuthority reads an authority from its certificate and its key (PKCS #8,
// PKCS #1 or SEC 1), both in DER. It refuses a pair that cannot sign: a key that does
// not match, a certificate that is not of a CA.
func ParseAuthority(certificate, key []byte) (*Authority, error) {
	c, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, fmt.Errorf("authority's certificate: %w", err)
	}
	k, err := ParseKey(key)
	if err != nil {
		return nil, fmt.Errorf("authority's key: %w", err)
	}
	switch {
	case !c.IsCA || c.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, fmt.Errorf("certificate of %q is not an authority's: it may not sign certificates", clip(c.Subject.CommonName))
	case len(c.SubjectKeyId) == 0:
		return nil, fmt.Errorf("certificate of authority %q has no subject key identifier", clip(c.Subject.CommonName))
	case !samePublic(c.PublicKey, k.Public()):
		return nil, fmt.Errorf("the key is not that of authority %q", clip(c.Subject.CommonName))
	}
	return &Authority{Certificate: c, Key: k}, nil
}

func samePublic(a, b crypto.PublicKey) bool {
	known, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && known.Equal(b)
}

// ParseKey reads a private key in DER.
func ParseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	return nil, errors.New("not a private key in PKCS #8, SEC 1 or PKCS #1")
}

// MarshalKey is a private key in PKCS #8.
func MarshalKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	return der, nil
}

// Issue certifies that public is the key of identity i, for ttl from now, but
// never beyond the authority's own end. It is good for both ends of a
// connection; that of a user is good for the end that calls. names are further host names and IP addresses, for browsers and
// tools that look at those alone. A node has NodeServerName beside them.
func (a *Authority) Issue(public crypto.PublicKey, i Identity, names []string, now time.Time, ttl time.Duration) (*x509.Certificate, error) {
	if err := i.Check(); err != nil {
		return nil, err
	}
	end := now.Add(ttl)
	if a.Certificate.NotAfter.Before(end) {
		end = a.Certificate.NotAfter
	}
	if ttl <= 0 || !end.After(now) {
		return nil, fmt.Errorf("certificate for %s: for %s, by an authority that ends at %s: already over", i, ttl, a.Certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: i.ID, Organization: []string{string(i.Role)}},
		NotBefore: now.Add(-Backdate), NotAfter: end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	template.URIs = append(template.URIs, i.uri())
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	switch i.Role {
	case User:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	case Node:
		template.DNSNames = append(template.DNSNames, NodeServerName)
	}
	return sign(template, a.Certificate, public, a.Key)
}

// NodeServerName is a host name in the certificate of each node, for tools such as
// Prometheus that verify host names: with the cluster's authorities it proves that the
// server is a node of the cluster. The name is not the node's id, since a person who
// chooses a node's id could choose the name of another server.
const NodeServerName = "node.muster.internal"

// Chain returns the certificates that a party sends with its own certificate: the cross
// certificates, leaf's issuer side first.
func (a *Authority) Chain(leaf *x509.Certificate) []*x509.Certificate {
	return append([]*x509.Certificate{leaf}, a.Cross...)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // RFC 5280 wants it positive
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %q: %w", clip(template.Subject.CommonName), err)
	}
	return x509.ParseCertificate(der)
}
