package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/pki"
)

// Issuer certifies the keys of users.
type Issuer interface {
	// CertifyUser certifies the key of a request (PKCS #10 in PEM) for the token with an
	// id. The first certificate of the chain is the user's. Each refusal is an
	// *api.Status.
	CertifyUser(request, id string, ttl time.Duration) (chain, authorities pki.Bundle, err error)
}

// Authorities are the authorities of the cluster. The methods block nobody.
type Authorities interface {
	// Trusts reports whether the authority with a key identifier is trusted now.
	Trusts(keyID []byte) bool
	// Verify returns the identity that a chain proves; the error has the fault.
	Verify(chain []*x509.Certificate) (pki.Identity, error)
}

// certificate is the client certificate of a token; the zero value proves nothing.
type certificate struct {
	digest    [sha256.Size]byte
	authority []byte
	valid     bool
}

// certificateOf reads the certificate of a record that was decoded.
func certificateOf(rec *record.TokenCertificate) (c certificate) {
	if rec == nil {
		return c
	}
	sum, err := hex.DecodeString(rec.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return c
	}
	if c.authority, err = hex.DecodeString(rec.Authority); err != nil {
		return c
	}
	c.digest, c.valid = [sha256.Size]byte(sum), true
	return c
}

// AuthenticateCertificate implements service.Certified. The handshake has proven that
// the caller has the key. A certificate that this cluster has issued is found by its
// digest, so no signature is verified; all others are verified to word the refusal.
func (a Authenticator) AuthenticateCertificate(chain []*x509.Certificate, passedOn string) (service.Principal, error) {
	if a.Authorities == nil {
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "no token: send the header Authorization: Bearer TOKEN; this coordinator takes no client certificates")
	}
	now, name := a.Table.now.Load(), service.CertificateName(chain[0])
	if t := now.certified(name); t != nil && a.Authorities.Trusts(t.certificate.authority) {
		return now.bearer(t, time.Now())
	}
	identity, err := a.Authorities.Verify(chain)
	switch {
	case err != nil:
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "%v", err)
	case identity.Role == pki.User:
		return service.Principal{}, revoked(identity.ID)
	case identity.Role == pki.Coordinator && passedOn != "":
		return a.passedOn(now, passedOn)
	}
	return service.Principal{}, api.Errorf(http.StatusUnauthorized, "the certificate of %s opens nothing here: send a token, or show a client certificate of muster token create --user NAME --dir FOLDER", identity)
}

// passedOn is the caller whom another coordinator has let in by a certificate.
func (a Authenticator) passedOn(now *rules, name string) (service.Principal, error) {
	t := now.certified(name)
	switch {
	case t == nil:
		id, _, _ := service.ParseCertificateName(name)
		return service.Principal{}, revoked(id)
	case !a.Authorities.Trusts(t.certificate.authority):
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "the client certificate %s is signed by an authority that is not trusted any more: make another one", t.record.ID)
	}
	return now.bearer(t, time.Now())
}

func revoked(id string) *api.Status {
	return api.Errorf(http.StatusUnauthorized, "the client certificate %s was revoked, or is not of this cluster: ask for another one", service.Clip(id))
}

// certified is the token of a certificate by the certificate's name; nil for none.
func (r *rules) certified(name string) *token {
	id, sum, ok := service.ParseCertificateName(name)
	if !ok {
		return nil
	}
	t, found := r.tokens[id]
	if !found || !t.certificate.valid || !bytes.Equal(t.certificate.digest[:], sum[:]) {
		return nil
	}
	return t
}

// bearer is the principal of a certificate, unless the certificate has ended.
func (r *rules) bearer(t *token, at time.Time) (service.Principal, error) {
	if isOver(t.principal.Expires, at) {
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "the client certificate %s expired at %s: ask for another one", t.record.ID, t.record.Expires)
	}
	return r.principal(t, &secret{}), nil
}

// certify makes the client certificate of a new token, and returns the parts of the
// answer that no other answer has.
func (k *Keeper) certify(rec *record.AccessToken, request string, ttl time.Duration) (api.AccessTokenStatus, error) {
	if k.Issuer == nil {
		return api.AccessTokenStatus{}, service.ErrNoIdentity
	}
	chain, authorities, err := k.Issuer.CertifyUser(request, rec.ID, ttl)
	if err != nil {
		return api.AccessTokenStatus{}, err
	}
	leaf := chain[0]
	sum := sha256.Sum256(leaf.Raw)
	rec.Certificate = &record.TokenCertificate{SHA256: hex.EncodeToString(sum[:]), Serial: leaf.SerialNumber.Text(16), Authority: hex.EncodeToString(leaf.AuthorityKeyId)}
	rec.Expires = stamp(leaf.NotAfter)
	return api.AccessTokenStatus{Chain: string(pki.FormatPEM(chain)), Authorities: string(pki.FormatPEM(authorities))}, nil
}
