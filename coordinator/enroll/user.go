package enroll

import (
	"bytes"
	"crypto/x509"
	"net/http"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/pki"
)

// CertifyUser implements access.Issuer. The package keeps no record of the certificate:
// the access token with the id is the record.
func (d Documents) CertifyUser(request, id string, ttl time.Duration) (chain, authorities pki.Bundle, err error) {
	der, err := pki.ParseRequestPEM([]byte(request))
	if err != nil {
		return nil, nil, api.Errorf(http.StatusUnprocessableEntity, "spec.request: %v", err)
	}
	public, err := pki.ParseRequest(der)
	if err != nil {
		return nil, nil, api.Errorf(http.StatusUnprocessableEntity, "spec.request: %v", err)
	}
	t := d.Service.trust.Load()
	leaf, err := t.signer.Issue(public, pki.Identity{Cluster: d.Service.config.Cluster, Role: pki.User, ID: id}, nil, time.Now(), ttl)
	if err != nil {
		return nil, nil, err
	}
	return t.signer.Chain(leaf), t.roots, nil
}

// Trusts implements access.Authorities.
func (d Documents) Trusts(keyID []byte) bool {
	return slices.ContainsFunc(d.Service.trust.Load().roots, func(root *x509.Certificate) bool { return bytes.Equal(root.SubjectKeyId, keyID) })
}

// Verify implements access.Authorities.
func (d Documents) Verify(chain []*x509.Certificate) (pki.Identity, error) {
	return pki.Verify(chain, d.Service.trust.Load().roots, time.Now(), pki.AsClient)
}
