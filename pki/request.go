package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
)

// maxRequest bounds a signing request, in bytes.
const maxRequest = 16 << 10

// NewRequest is a PKCS #10 request in DER that proves possession of key. The
// request has no name: the identity of the sender decides the name in the certificate.
func NewRequest(key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	return der, nil
}

// FormatRequestPEM is a request in PEM, and ParseRequestPEM its inverse.
func FormatRequestPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: der})
}

// ParseRequestPEM returns the DER of a request in PEM.
func ParseRequestPEM(text []byte) ([]byte, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != pemRequest || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("want one PEM block %s and nothing else", pemRequest)
	}
	return block.Bytes, nil
}

const pemRequest = "CERTIFICATE REQUEST"

// ParseRequest returns the public key of a request whose signature proves
// possession of the private one. Names in it are ignored. Keys that are too
// weak are refused: RSA below 2048 bits, and all curves but the NIST curves from
// P-256 on and Ed25519.
func ParseRequest(der []byte) (crypto.PublicKey, error) {
	if len(der) > maxRequest {
		return nil, fmt.Errorf("certificate request of %d bytes, more than %d", len(der), maxRequest)
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	switch key := r.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if bits := key.Curve.Params().BitSize; bits < 256 {
			return nil, fmt.Errorf("certificate request: a key on a curve of %d bits, want 256 or more", bits)
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < 2048 || bits > 8192 {
			return nil, fmt.Errorf("certificate request: an RSA key of %d bits, want 2048 to 8192", bits)
		}
	case ed25519.PublicKey:
	default:
		return nil, fmt.Errorf("certificate request: a key of kind %T", r.PublicKey)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("certificate request: its signature does not prove possession of the key: %w", err)
	}
	return r.PublicKey, nil
}

// KeyHash is the SHA-256 of a public key's SubjectPublicKeyInfo, in hex.
func KeyHash(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}
