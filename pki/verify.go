package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Use is the purpose for which a party shows a certificate.
type Use = x509.ExtKeyUsage

// The uses: the end that is called, and the end that calls.
const (
	AsServer Use = x509.ExtKeyUsageServerAuth
	AsClient Use = x509.ExtKeyUsageClientAuth
)

// Verify returns the identity that a chain (leaf first, then certificates that help to
// find a root, in any order) proves at the time now to a party that trusts roots. The
// error has the fault and a remedy.
func Verify(chain []*x509.Certificate, roots Bundle, now time.Time, use Use) (Identity, error) {
	if len(chain) == 0 {
		return Identity{}, errors.New("no certificate was shown")
	}
	leaf := chain[0]
	identity, err := IdentityOf(leaf)
	if err != nil {
		return Identity{}, err
	}
	switch {
	case now.Before(leaf.NotBefore):
		return Identity{}, fmt.Errorf("certificate of %s is not valid before %s and the clock here says %s: check the clocks",
			identity, instant(leaf.NotBefore), instant(now))
	case now.After(leaf.NotAfter):
		return Identity{}, fmt.Errorf("certificate of %s expired at %s and it is %s now: renew it, or enroll again with a new bootstrap token",
			identity, instant(leaf.NotAfter), instant(now))
	}
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []Use{use},
	}
	for _, c := range roots {
		options.Roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(options); err != nil {
		var unknown x509.UnknownAuthorityError
		if errors.As(err, &unknown) {
			return Identity{}, fmt.Errorf("certificate of %s is signed by %q, which is none of the %d authorities trusted here: is it of another cluster?",
				identity, clip(leaf.Issuer.CommonName), len(roots))
		}
		return Identity{}, fmt.Errorf("certificate of %s: %w", identity, err)
	}
	return identity, nil
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// RenewAt is when a certificate should be replaced: after two thirds of its
// time from the moment it was issued.
func RenewAt(c *x509.Certificate) time.Time {
	from := c.NotBefore.Add(Backdate)
	return from.Add(c.NotAfter.Sub(from) * 2 / 3)
}

// RenewIn is the time until a holder should replace a certificate, which came at an instant:
// RenewAt by the holder's clock, at least a third of the certificate's time after the
// instant. isAhead: the certificate was due on arrival, by a clock far ahead of the
// authority's. The zero time stands for an unknown instant.
func RenewIn(c *x509.Certificate, now, got time.Time) (wait time.Duration, isAhead bool) {
	wait = RenewAt(c).Sub(now)
	if got.IsZero() {
		return wait, false
	}
	least := got.Add(c.NotAfter.Sub(c.NotBefore.Add(Backdate)) / 3).Sub(now)
	return max(wait, least), !RenewAt(c).After(got)
}
