package access_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/pki"
)

// authority signs for one cluster and trusts its roots.
type authority struct {
	t      testing.TB
	signer *pki.Authority
	roots  pki.Bundle
}

func newAuthority(t testing.TB, cluster string) *authority {
	signer, err := pki.NewAuthority(cluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t, signer, pki.Bundle{signer.Certificate}}
}

func (a *authority) CertifyUser(request, id string, ttl time.Duration) (chain, authorities pki.Bundle, err error) {
	der, err := pki.ParseRequestPEM([]byte(request))
	if err != nil {
		return nil, nil, api.Errorf(http.StatusUnprocessableEntity, "spec.request: %v", err)
	}
	public, err := pki.ParseRequest(der)
	if err != nil {
		return nil, nil, api.Errorf(http.StatusUnprocessableEntity, "spec.request: %v", err)
	}
	return a.issue(public, pki.User, id, ttl), a.roots, nil
}

func (a *authority) issue(public crypto.PublicKey, role pki.Role, id string, ttl time.Duration) []*x509.Certificate {
	a.t.Helper()
	leaf, err := a.signer.Issue(public, pki.Identity{Cluster: "c", Role: role, ID: id}, nil, time.Now(), ttl)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.signer.Chain(leaf)
}

func (a *authority) Trusts(keyID []byte) bool {
	return slices.ContainsFunc(a.roots, func(c *x509.Certificate) bool { return string(c.SubjectKeyId) == string(keyID) })
}

func (a *authority) Verify(chain []*x509.Certificate) (pki.Identity, error) {
	return pki.Verify(chain, a.roots, time.Now(), pki.AsClient)
}

// newCertifiedOffice is an office whose cluster has an authority.
func newCertifiedOffice(t testing.TB) (*office, *authority) {
	o, a := newOffice(t), newAuthority(t, "c")
	o.Issuer, o.Keeper.Reserved, o.door.Authorities = a, "oidc:", a
	return o, a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func request(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := pki.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pki.FormatRequestPEM(der))
}

// certified makes a client certificate as the administrator.
func (o *office) certified(user, role, tenant string, ttl time.Duration) (id string, chain []*x509.Certificate) {
	o.t.Helper()
	wish := spec(user, role, tenant)
	wish.Spec.Request = request(o.t, newKey(o.t))
	made := o.made(wish, ttl)
	chain, err := pki.ParsePEM([]byte(made.Status.Chain))
	if err != nil || made.Status.Token != "" || made.Status.Secrets != 0 || made.Status.Serial != chain[0].SerialNumber.Text(16) || made.Status.Authorities == "" || made.Spec.Request != "" {
		o.t.Fatalf("made %+v, %v", made, err)
	}
	return made.Metadata.Name, chain
}

// A client certificate has the roles of its token: the role that it was made with, or
// those of the bindings of its user.
func TestACertificateLetsItsOwnerInWithTheRoles(t *testing.T) {
	o, _ := newCertifiedOffice(t)
	for name, c := range map[string]struct{ user, role, tenant, want string }{
		"a role":               {"ada", "editor", "vision", "editor of tenant vision"},
		"bindings of the user": {"cert:bob", "", "", "viewer of tenant speech"},
		"neither":              {"cert:eve", "", "", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.user == "cert:bob" {
				if _, err := o.PutRoleBinding(o.as(admin), binding("speech.bob", "viewer", "speech", user("cert:bob")), true); err != nil {
					t.Fatal(err)
				}
			}
			id, chain := o.certified(c.user, c.role, c.tenant, time.Hour)
			p, err := o.door.AuthenticateCertificate(chain, "")
			if err != nil || p.Name != "cert:"+strings.TrimPrefix(c.user, "cert:") || p.Proof != api.ProofCertificate || p.Token != id || p.Roles() != c.want || !p.Expires.Equal(chain[0].NotAfter) {
				t.Errorf("the caller is %+v, %v", p, err)
			}
		})
	}
}

// Each certificate that opens nothing has the answer that says why.
func TestCertificatesThatOpenNothing(t *testing.T) {
	o, a := newCertifiedOffice(t)
	other, own := newAuthority(t, "c"), a.roots
	id, good := o.certified("cert:ada", "viewer", "", time.Hour)
	ended, endedChain := o.certified("cert:ada", "viewer", "", time.Hour)
	if _, err := o.RevokeToken(o.as(admin), ended, api.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	ofAnother := other.issue(newKey(t).Public(), pki.User, id, time.Hour)
	forged := a.issue(newKey(t).Public(), pki.User, id, time.Hour) // of the same authority, and in no record
	server := *good[0]
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.Raw = append([]byte{}, good[0].Raw...)
	server.Raw[0]++
	foreign := *good[0]
	foreign.URIs, foreign.Raw = nil, server.Raw
	for name, c := range map[string]struct {
		chain    []*x509.Certificate
		passedOn string
		roots    pki.Bundle
		want     string
	}{
		"revoked":                                  {chain: endedChain, want: "the client certificate " + ended + " was revoked"},
		"of another authority":                     {chain: ofAnother, want: "none of the 1 authorities trusted here"},
		"with the id of another certificate":       {chain: forged, want: "the client certificate " + id + " was revoked, or is not of this cluster"},
		"of a server":                              {chain: []*x509.Certificate{&server}, want: "incompatible key usage"},
		"of no party of a cluster":                 {chain: []*x509.Certificate{&foreign}, want: "has 0 URI names"},
		"of a node":                                {chain: a.issue(newKey(t).Public(), pki.Node, "gpu-1", time.Hour), want: "the certificate of muster://c/node/gpu-1 opens nothing here"},
		"of an operator":                           {chain: a.issue(newKey(t).Public(), pki.Operator, "ann", time.Hour), want: "muster://c/operator/ann opens nothing here"},
		"of a coordinator that passes nothing on":  {chain: a.issue(newKey(t).Public(), pki.Coordinator, "c2", time.Hour), want: "muster://c/coordinator/c2 opens nothing here"},
		"passed on by a node":                      {chain: a.issue(newKey(t).Public(), pki.Node, "gpu-1", time.Hour), passedOn: service.CertificateName(good[0]), want: "opens nothing here"},
		"passed on by another cluster":             {chain: other.issue(newKey(t).Public(), pki.Coordinator, "c2", time.Hour), passedOn: service.CertificateName(good[0]), want: "none of the 1 authorities"},
		"revoked, and passed on":                   {chain: a.issue(newKey(t).Public(), pki.Coordinator, "c2", time.Hour), passedOn: service.CertificateName(endedChain[0]), want: "was revoked"},
		"a name that is none, passed on":           {chain: a.issue(newKey(t).Public(), pki.Coordinator, "c2", time.Hour), passedOn: id + ".zz", want: "was revoked, or is not of this cluster"},
		"of an authority that is not trusted more": {chain: good, roots: other.roots, want: "none of the 1 authorities trusted here"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.roots != nil {
				a.roots = c.roots
				defer func() { a.roots = own }()
			}
			if _, err := o.door.AuthenticateCertificate(c.chain, c.passedOn); code(err) != http.StatusUnauthorized || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestACertificateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := newCertifiedOffice(t)
		id, chain := o.certified("cert:ada", "viewer", "", time.Hour)
		time.Sleep(time.Hour - time.Minute)
		if _, err := o.door.AuthenticateCertificate(chain, ""); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if _, err := o.door.AuthenticateCertificate(chain, ""); code(err) != http.StatusUnauthorized || !strings.Contains(err.Error(), "the client certificate "+id+" expired at ") {
			t.Errorf("expired: %v", err)
		}
	})
}

// A coordinator that passes a request on names the certificate; the leader judges the
// name by its own table.
func TestACertificateIsPassedOn(t *testing.T) {
	o, a := newCertifiedOffice(t)
	id, chain := o.certified("cert:ada", "editor", "vision", time.Hour)
	p, err := o.door.AuthenticateCertificate(a.issue(newKey(t).Public(), pki.Coordinator, "c2", time.Hour), service.CertificateName(chain[0]))
	if err != nil || p.Name != "cert:ada" || p.Token != id || p.Roles() != "editor of tenant vision" {
		t.Errorf("the caller is %+v, %v", p, err)
	}
}

// A token decides where a request has one, whatever the certificate of its connection.
func TestATokenWinsOverACertificate(t *testing.T) {
	o, _ := newCertifiedOffice(t)
	_, chain := o.certified("cert:ada", "admin", "", time.Hour)
	bob := o.made(spec("bob", "viewer", "vision"), 0)
	for name, c := range map[string]struct {
		headers []string
		want    string // a user, or a part of the refusal
	}{
		"no token":            {nil, "cert:ada"},
		"an empty header":     {[]string{""}, "cert:ada"},
		"a token":             {[]string{"Bearer " + bob.Status.Token}, "bob"},
		"a wrong token":       {[]string{"Bearer muster.wrong"}, "the token is not valid here"},
		"another scheme":      {[]string{"Basic YTpi"}, "not of the form"},
		"two tokens":          {[]string{"Bearer a", "Bearer b"}, "2 Authorization headers"},
		"a token of no value": {[]string{"Bearer "}, "not of the form"},
	} {
		t.Run(name, func(t *testing.T) {
			p, status := service.Authenticate(t.Context(), o.door, service.Proofs{Authorization: c.headers, Chain: chain})
			if got := p.Name; status != nil && !strings.Contains(status.Message, c.want) || status == nil && got != c.want {
				t.Errorf("%q, %v, want %q", got, status, c.want)
			}
		})
	}
}

// No token has the name of a user whom another origin proves.
func TestNamesOfOtherOriginsAreRefused(t *testing.T) {
	o, _ := newCertifiedOffice(t)
	for _, by := range []service.Principal{admin, chief} {
		wish := spec("oidc:ada@example.org", "editor", "vision")
		if _, err := o.CreateToken(o.as(by), wish, 0); code(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "names that begin with oidc: are those of the identity provider") {
			t.Errorf("%s makes a token of the provider's user: %v", by.Name, err)
		}
	}
	for name, c := range map[string]struct{ user, request, want string }{
		"a token of a user with a certificate": {"cert:ada", "", "names that begin with cert: are those of client certificates"},
		"a certificate of nobody":              {"cert: ", "-----BEGIN CERTIFICATE REQUEST-----", "no name after cert:"},
		"no request":                           {"cert:ada", "x", "spec.request: \"x\": want a certificate request"},
	} {
		t.Run(name, func(t *testing.T) {
			s := api.AccessTokenSpec{User: c.user, Role: "editor", Tenant: "vision", Request: c.request}
			if status := s.Validate(); status == nil || status.Code != http.StatusUnprocessableEntity || !strings.Contains(status.Message, c.want) {
				t.Errorf("%v", status)
			}
		})
	}
}

// A request that proves no key is refused, and so is a certificate where there is no
// authority, a second secret, and a role that is not the caller's to give.
func TestWhatIsNotCertified(t *testing.T) {
	o, _ := newCertifiedOffice(t)
	id, _ := o.certified("cert:ada", "viewer", "vision", time.Hour)
	if _, err := o.RotateToken(o.as(admin), id, 0); code(err) != http.StatusConflict || !strings.Contains(err.Error(), "has no secret") {
		t.Errorf("rotated: %v", err)
	}
	wish := spec("cert:ada", "viewer", "vision")
	wish.Spec.Request = "-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"
	if _, err := o.CreateToken(o.as(admin), wish, time.Hour); code(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "spec.request: ") {
		t.Errorf("certified by no request: %v", err)
	}
	wish.Spec.Request = request(t, newKey(t))
	wish.Spec.Tenant = "speech"
	if _, err := o.CreateToken(o.as(chief), wish, time.Hour); code(err) != http.StatusForbidden && code(err) != http.StatusNotFound {
		t.Errorf("a tenant-admin of vision certifies for speech: %v", err)
	}
	wish.Spec.Tenant = "vision"
	if _, err := o.CreateToken(o.as(chief), wish, time.Hour); err != nil {
		t.Errorf("a tenant-admin certifies for the own tenant: %v", err)
	}
	o.Issuer, o.door.Authorities = nil, nil
	if _, err := o.CreateToken(o.as(admin), wish, time.Hour); code(err) != http.StatusNotImplemented {
		t.Errorf("certified without an authority: %v", err)
	}
	if _, err := o.door.AuthenticateCertificate(newAuthority(t, "c").issue(newKey(t).Public(), pki.User, id, time.Hour), ""); code(err) != http.StatusUnauthorized {
		t.Errorf("a certificate lets in without an authority: %v", err)
	}
}

// BenchmarkACertificate is one request by a certificate, the handshake left out.
func BenchmarkACertificate(b *testing.B) {
	o, _ := newCertifiedOffice(b)
	_, chain := o.certified("cert:ada", "editor", "vision", time.Hour)
	for b.Loop() {
		if _, err := o.door.AuthenticateCertificate(chain, ""); err != nil {
			b.Fatal(err)
		}
	}
}

var (
	_ access.Issuer      = (*authority)(nil)
	_ access.Authorities = (*authority)(nil)
)
