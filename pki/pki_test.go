package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/pki"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t testing.TB) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("c", now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func succeed(t testing.TB, a *pki.Authority) *pki.Authority {
	t.Helper()
	next, err := a.Succeed("c", now)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func key(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var node = pki.Identity{Cluster: "c", Role: pki.Node, ID: "gpu-1"}

// chain is a node's, by a, for an hour.
func chain(t testing.TB, a *pki.Authority) []*x509.Certificate {
	t.Helper()
	leaf, err := a.Issue(key(t).Public(), node, nil, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a.Chain(leaf)
}

func bundle(list ...*pki.Authority) pki.Bundle {
	var b pki.Bundle
	for _, a := range list {
		b = append(b, a.Certificate)
	}
	return b
}

// TestACrossCertificateEndsWithItsIssuer: nothing that an authority has signed
// outlives it.
func TestACrossCertificateEndsWithItsIssuer(t *testing.T) {
	mine := authority(t)
	next, err := mine.Succeed("c", now.Add(365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := next.Cross[0].NotAfter, mine.Certificate.NotAfter; !got.Equal(want) {
		t.Errorf("the cross certificate ends at %s, its issuer at %s", got, want)
	}
	if !next.Certificate.NotAfter.After(mine.Certificate.NotAfter) {
		t.Error("the next authority does not outlive the one before: the test says nothing")
	}
}

func TestWhoIsBelieved(t *testing.T) {
	mine, theirs := authority(t), authority(t)
	next := succeed(t, mine)
	third := succeed(t, next)
	good := chain(t, mine)
	nodesKey := key(t)
	nodes, err := mine.Issue(nodesKey.Public(), node, nil, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	foreign := func(change func(*x509.Certificate)) []*x509.Certificate {
		template := *good[0]
		change(&template)
		der, err := x509.CreateCertificate(rand.Reader, &template, mine.Certificate, key(t).Public(), mine.Key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return []*x509.Certificate{c}
	}
	for name, c := range map[string]struct {
		chain []*x509.Certificate
		roots pki.Bundle
		at    time.Time
		use   pki.Use
		want  string // "" is good
	}{
		"a certificate of a trusted authority":          {chain: good, roots: bundle(mine)},
		"it as a server":                                {chain: good, roots: bundle(mine), use: pki.AsServer},
		"one of two trusted authorities":                {chain: good, roots: bundle(theirs, mine)},
		"a clock five minutes behind":                   {chain: good, roots: bundle(mine), at: now.Add(-pki.Backdate)},
		"a clock further behind":                        {chain: good, roots: bundle(mine), at: now.Add(-pki.Backdate - time.Second), want: "check the clocks"},
		"the last second":                               {chain: good, roots: bundle(mine), at: now.Add(time.Hour)},
		"expired":                                       {chain: good, roots: bundle(mine), at: now.Add(time.Hour + time.Second), want: "expired at 2026-03-01T13:00:00Z"},
		"another authority of the same name":            {chain: good, roots: bundle(theirs), want: "none of the 1 authorities trusted here"},
		"no authority at all":                           {chain: good, want: "none of the 0 authorities"},
		"nothing shown":                                 {roots: bundle(mine), want: "no certificate"},
		"a new authority to who trusts the old one":     {chain: chain(t, next), roots: bundle(mine)},
		"a third authority to who trusts the first one": {chain: chain(t, third), roots: bundle(mine)},
		"the old authority to who trusts the new one":   {chain: good, roots: bundle(next), want: "none of the 1 authorities"},
		"a new authority without its cross certificate": {chain: chain(t, next)[:1], roots: bundle(mine), want: "none of the 1 authorities"},
		"a node's certificate that signs another": {
			chain: []*x509.Certificate{signedBy(t, nodes, nodesKey), nodes}, roots: bundle(mine), want: "none of the 1 authorities",
		},
		"a certificate for clients alone, as a server": {
			chain: foreign(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			roots: bundle(mine), use: pki.AsServer, want: "incompatible key usage",
		},
		"two identities in one certificate": {
			chain: foreign(func(c *x509.Certificate) { c.URIs = append(c.URIs, c.URIs[0]) }), roots: bundle(mine), want: "2 URI names",
		},
		"no identity": {chain: foreign(func(c *x509.Certificate) { c.URIs = nil }), roots: bundle(mine), want: "0 URI names"},
		"a web address for an identity": {
			chain: foreign(func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "https", Host: "c", Path: "/node/gpu-1"}} }),
			roots: bundle(mine), want: "want muster://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.at.IsZero() {
				c.at = now
			}
			if c.use == 0 {
				c.use = pki.AsClient
			}
			got, err := pki.Verify(c.chain, c.roots, c.at, c.use)
			if c.want == "" {
				if err != nil || got != node {
					t.Errorf("got %s, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || got != (pki.Identity{}) {
				t.Errorf("got %s, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}

// signedBy is a certificate that a node made with its own.
func signedBy(t *testing.T, parent *x509.Certificate, signer *ecdsa.PrivateKey) *x509.Certificate {
	template := *parent
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key(t).Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAHostWithATokenBelievesThePinnedAuthorityAlone(t *testing.T) {
	mine, theirs := authority(t), authority(t)
	next := succeed(t, mine)
	shown := append(chain(t, next), mine.Certificate, next.Certificate)
	for name, pin := range map[string]pki.Pin{"the newest": pki.PinOf(next.Certificate), "the one before": pki.PinOf(mine.Certificate)} {
		roots, err := pki.Pinned(shown, pin)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := pki.Verify(shown, roots, now, pki.AsServer); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pki.Pinned(shown, pki.PinOf(theirs.Certificate)); err == nil || !strings.Contains(err.Error(), "somebody in between") {
		t.Errorf("another's pin: %v", err)
	}
	// Whoever shows the right root beside a chain of his own has not proved
	// anything by it.
	forged := append(chain(t, theirs), mine.Certificate)
	roots, err := pki.Pinned(forged, pki.PinOf(mine.Certificate))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pki.Verify(forged, roots, now, pki.AsServer); err == nil {
		t.Errorf("a borrowed root is believed: %s", got)
	}
	if _, err := pki.Pinned(shown, pki.PinOf(shown[0])); err == nil {
		t.Error("a pinned certificate that is no authority is believed")
	}
}

func TestCertificatesAreRenewedAtTwoThirds(t *testing.T) {
	a := authority(t)
	leaf, err := a.Issue(key(t).Public(), node, []string{"localhost", "::1"}, now, 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := pki.RenewAt(leaf), now.Add(20*24*time.Hour); !got.Equal(want) {
		t.Errorf("renewed at %s, want %s", got, want)
	}
	if err := leaf.VerifyHostname("localhost"); err != nil {
		t.Error(err)
	}
	if err := leaf.VerifyHostname("::1"); err != nil {
		t.Error(err)
	}
	late := a.Certificate.NotAfter.Add(-time.Hour)
	leaf, err = a.Issue(key(t).Public(), node, nil, late, 24*time.Hour)
	if err != nil || !leaf.NotAfter.Equal(a.Certificate.NotAfter) {
		t.Errorf("a certificate outlives its authority: %v", err)
	}
	if _, err := a.Issue(key(t).Public(), node, nil, a.Certificate.NotAfter, time.Hour); err == nil {
		t.Error("an authority that is over signs")
	}
	if _, err := a.Issue(key(t).Public(), pki.Identity{Cluster: "c", Role: "boss", ID: "x"}, nil, now, time.Hour); err == nil {
		t.Error("a role that there is not is certified")
	}
}

func TestRequestsProvePossessionOfAKeyThatIsStrong(t *testing.T) {
	good, err := pki.NewRequest(key(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pki.ParseRequest(good); err != nil {
		t.Error(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(signer any) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	forged := append([]byte(nil), good...)
	forged[len(forged)-1] ^= 1
	for name, c := range map[string]struct {
		der  []byte
		want string
	}{
		"RSA of 1024 bits":    {request(weak), "1024 bits"},
		"a curve of 224 bits": {request(small), "224 bits"},
		"another's key":       {forged, "possession"},
		"no request":          {[]byte("x"), "certificate request"},
		"too long a request":  {make([]byte, 20<<10), "20480 bytes"},
	} {
		if _, err := pki.ParseRequest(c.der); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestAuthoritiesReadBackAndMustFitTheirKeys(t *testing.T) {
	a, b := authority(t), authority(t)
	der, err := pki.MarshalKey(a.Key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pki.ParseAuthority(a.Certificate.Raw, der)
	if err != nil || got.ID() != a.ID() {
		t.Fatalf("read back: %v", err)
	}
	if _, err := pki.ParseAuthority(b.Certificate.Raw, der); err == nil || !strings.Contains(err.Error(), "not that of authority") {
		t.Errorf("another's key: %v", err)
	}
	if _, err := pki.ParseAuthority(chain(t, a)[0].Raw, der); err == nil || !strings.Contains(err.Error(), "not an authority's") {
		t.Errorf("a node's certificate: %v", err)
	}
	if _, err := pki.ParsePEM(pki.FormatKeyPEM(der)); err == nil {
		t.Error("a private key is read as a list of certificates")
	}
	text := pki.FormatPEM(bundle(a, b))
	list, err := pki.ParsePEM(text)
	if err != nil || len(list) != 2 || !list[1].Equal(b.Certificate) {
		t.Errorf("certificates read back: %v, %v", list, err)
	}
	if _, err := pki.ParsePEM(append(text, "rubbish"...)); err == nil {
		t.Error("rubbish behind certificates is ignored")
	}
}

func TestFingerprintsTellWhatIsNew(t *testing.T) {
	a, b := authority(t), authority(t)
	one, two, three := []byte("1234567890123456"), []byte("2234567890123456"), []byte("3234567890123456")
	base := pki.Fingerprint(bundle(a, b), a.Certificate.SubjectKeyId, [][]byte{one, two, three})
	for name, c := range map[string]struct {
		got  string
		same bool
	}{
		"roots in another order":      {pki.Fingerprint(bundle(b, a), a.Certificate.SubjectKeyId, [][]byte{one, two, three}), true},
		"further keys in another one": {pki.Fingerprint(bundle(a, b), a.Certificate.SubjectKeyId, [][]byte{one, three, two}), true},
		"another first key":           {pki.Fingerprint(bundle(a, b), a.Certificate.SubjectKeyId, [][]byte{two, one, three}), false},
		"another signs":               {pki.Fingerprint(bundle(a, b), b.Certificate.SubjectKeyId, [][]byte{one, two, three}), false},
		"a root less":                 {pki.Fingerprint(bundle(a), a.Certificate.SubjectKeyId, [][]byte{one, two, three}), false},
		"a key less":                  {pki.Fingerprint(bundle(a, b), a.Certificate.SubjectKeyId, [][]byte{one, two}), false},
	} {
		if (c.got == base) != c.same {
			t.Errorf("%s: same %t, want %t", name, !c.same, c.same)
		}
	}
}

func TestTokensReadBackAndHideTheirSecret(t *testing.T) {
	token := pki.NewToken(pki.PinOf(authority(t).Certificate))
	got, err := pki.ParseToken(token.Text())
	if err != nil || got != token {
		t.Fatalf("read back: %v, %v", got, err)
	}
	secret := strings.Split(token.Text(), ".")[2]
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, token); strings.Contains(text, secret) {
			t.Errorf("%s prints %q", verb, text)
		}
	}
	if !token.Proves(token.Hash()) || token.Proves(pki.NewToken(token.Pin).Hash()) || token.Proves("") {
		t.Error("a token proves itself and no other")
	}
	for name, text := range map[string]string{
		"nothing": "", "another kind": "kubeadm." + token.Text()[12:], "a part less": token.Text()[:len(token.Text())-65],
		"a digit less": token.Text()[:len(token.Text())-1], "upper case": strings.ToUpper(token.Text()), "a part more": token.Text() + ".x",
	} {
		if _, err := pki.ParseToken(text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// matches is MatchNode as one would write it first.
func matches(pattern, id string) bool {
	if pattern == "" {
		return id == ""
	}
	if pattern[0] == '*' {
		return matches(pattern[1:], id) || (id != "" && matches(pattern, id[1:]))
	}
	return id != "" && (pattern[0] == '?' || pattern[0] == id[0]) && matches(pattern[1:], id[1:])
}

func TestPatternsMatchAsTheirDefinitionSays(t *testing.T) {
	for name, c := range map[string]struct {
		pattern, id string
		want        bool
	}{
		"itself": {"gpu-1", "gpu-1", true}, "a prefix": {"gpu-*", "gpu-17", true}, "another prefix": {"gpu-*", "cpu-17", false},
		"one character": {"gpu-?", "gpu-1", true}, "not two": {"gpu-?", "gpu-17", false}, "all": {"*", "x", true},
		"in the middle": {"a*c", "abbc", true}, "twice": {"*-*", "gpu-1", true},
	} {
		if got := pki.MatchNode(c.pattern, c.id); got != c.want {
			t.Errorf("%s: %q of %q: %t", name, c.pattern, c.id, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*?]{0,8}`).Draw(t, "pattern")
		id := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "id")
		if got, want := pki.MatchNode(pattern, id), matches(pattern, id); got != want {
			t.Fatalf("%q of %q: %t, want %t", pattern, id, got, want)
		}
	})
	for pattern, good := range map[string]bool{
		"*": true, "gpu-*": true, "gpu-??": true, "gpu-1": true, strings.Repeat("a", 63): true,
		"": false, "a b": false, "-x": false, "*/..": false, strings.Repeat("a", 64): false, strings.Repeat("*", 200): false,
	} {
		if err := pki.CheckPattern(pattern); (err == nil) != good {
			t.Errorf("pattern %q: %v", pattern, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(pki.NewToken(pki.Pin{}).Text())
	f.Add("muster-boot.0123456789.0123456789abcdef0123456789abcdef." + strings.Repeat("0", 64))
	f.Add("muster-boot...")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := pki.ParseToken(text)
		if err == nil && token.Text() != text {
			t.Errorf("%q reads as %q", text, token.Text())
		}
	})
}

func FuzzParseIdentity(f *testing.F) {
	for _, text := range []string{"muster://c/node/gpu-1", "muster://c/node/gpu-1/", "muster://c:1/node/x", "muster://u@c/node/x", "muster://c/node/%2e", "https://c/node/x", "muster://c/boss/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := pki.ParseIdentity(text)
		if err != nil {
			return
		}
		if i.String() != text || i.Check() != nil {
			t.Errorf("%q reads as %s", text, i)
		}
		// What is written into a certificate reads back from its URI name.
		u, err := url.Parse(text)
		if err != nil || u.String() != text {
			t.Errorf("%q as a URI is %v, %v", text, u, err)
		}
	})
}

func FuzzIdentityOf(f *testing.F) {
	f.Add(chain(f, authority(f))[0].Raw)
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		if i, err := pki.IdentityOf(c); err == nil && i.Check() != nil {
			t.Errorf("identity %s: %v", i, i.Check())
		}
	})
}

// A request that is read has a key of a kind that the cluster certifies.
func FuzzParseRequest(f *testing.F) {
	der, err := pki.NewRequest(key(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pki.FormatRequestPEM(der))
	f.Add(pki.FormatRequestPEM([]byte{0x30, 0}))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----"))
	f.Fuzz(func(t *testing.T, text []byte) {
		der, err := pki.ParseRequestPEM(text)
		if err != nil {
			return
		}
		if public, err := pki.ParseRequest(der); err == nil {
			if _, err := pki.KeyHash(public); err != nil {
				t.Errorf("a request with a key that nothing can hash: %v", err)
			}
		}
	})
}

func BenchmarkIssue(b *testing.B) {
	a, public := authority(b), key(b).Public()
	for b.Loop() {
		if _, err := a.Issue(public, node, nil, now, time.Hour); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	a := authority(b)
	shown := chain(b, a)
	for b.Loop() {
		if _, err := pki.Verify(shown, bundle(a), now, pki.AsClient); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleMatchNode() {
	fmt.Println(pki.MatchNode("gpu-*", "gpu-17"), pki.MatchNode("gpu-?", "gpu-17"))
	// Output: true false
}
