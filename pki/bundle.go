package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// Bundle is the authorities that a party trusts. There is more than one while
// an authority takes over from another.
type Bundle []*x509.Certificate

// maxBundle bounds a bundle and a chain, in certificates.
const maxBundle = 32

// ParseCertificates reads certificates in DER, one each.
func ParseCertificates(ders [][]byte) ([]*x509.Certificate, error) {
	if len(ders) == 0 || len(ders) > maxBundle {
		return nil, fmt.Errorf("%d certificates, want 1 to %d", len(ders), maxBundle)
	}
	list := make([]*x509.Certificate, 0, len(ders))
	for i, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of %d: %w", i+1, len(ders), err)
		}
		list = append(list, c)
	}
	return list, nil
}

// pemCertificate and pemKey are the types of PEM blocks written and read.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// ParsePEM reads the certificates of a PEM file, in its order. Other blocks
// are refused: a key does not belong there.
func ParsePEM(text []byte) ([]*x509.Certificate, error) {
	var ders [][]byte
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != pemCertificate {
			return nil, fmt.Errorf("PEM block %d is a %q, want only %s", len(ders)+1, clip(block.Type), pemCertificate)
		}
		ders = append(ders, block.Bytes)
		text = rest
	}
	if len(bytes.TrimSpace(text)) > 0 || len(ders) == 0 {
		return nil, errors.New("not a list of PEM certificates")
	}
	return ParseCertificates(ders)
}

// FormatPEM is the inverse of ParsePEM.
func FormatPEM(certificates []*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, c := range certificates {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw}))
	}
	return b.Bytes()
}

// ParseKeyPEM returns the DER of the only private key in a PEM file.
func ParseKeyPEM(text []byte) ([]byte, error) {
	for {
		block, rest := pem.Decode(text)
		switch {
		case block == nil:
			return nil, errors.New("no PEM private key")
		case block.Type == pemKey, block.Type == "EC PRIVATE KEY", block.Type == "RSA PRIVATE KEY":
			return block.Bytes, nil
		}
		text = rest
	}
}

// WithoutKeys is the certificates of a PEM file that holds private keys too.
func WithoutKeys(text []byte) []byte {
	var b bytes.Buffer
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return b.Bytes()
		}
		if block.Type == pemCertificate {
			b.Write(pem.EncodeToMemory(block))
		}
		text = rest
	}
}

// FormatKeyPEM writes a key in PKCS #8 as PEM.
func FormatKeyPEM(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}) }

// Raw is the certificates in DER.
func Raw(certificates []*x509.Certificate) [][]byte {
	ders := make([][]byte, 0, len(certificates))
	for _, c := range certificates {
		ders = append(ders, c.Raw)
	}
	return ders
}

// Fingerprint is the same for two parties only if they trust the same roots,
// the same one of them signs (issuer is its subject key identifier), the rings'
// keys are the same, the first of them first, and the same keys of operators are
// revoked (KeyHash, in order). It tells nothing of the rings' keys.
func Fingerprint(roots Bundle, issuer []byte, gossipKeys [][]byte, revoked ...string) string {
	var rows [][]byte
	for _, c := range roots {
		sum := sha256.Sum256(c.Raw)
		rows = append(rows, sum[:])
	}
	slices.SortFunc(rows, bytes.Compare)
	keys := make([][]byte, 0, len(gossipKeys))
	for _, k := range gossipKeys {
		sum := sha256.Sum256(k)
		keys = append(keys, sum[:])
	}
	if len(keys) > 1 {
		slices.SortFunc(keys[1:], bytes.Compare)
	}
	h := sha256.New()
	fmt.Fprintf(h, "roots %x issuer %x keys %x", rows, issuer, keys)
	if len(revoked) > 0 { // without revocations the fingerprint equals that of versions below 0.2
		fmt.Fprintf(h, " revoked %q", revoked)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
