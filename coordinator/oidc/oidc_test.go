package oidc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/test/provider"
)

// door is a verifier of a provider's tokens.
type door struct {
	*oidc.Verifier
	t       *testing.T
	p       *provider.Provider
	changes int
}

func newDoor(t *testing.T, p *provider.Provider, set func(*oidc.Config)) *door {
	t.Helper()
	c := oidc.Config{Issuer: p.Issuer(), ClientID: provider.ClientID, CAFile: p.CAFile(), UserClaim: "email", GroupsClaim: "groups"}
	if set != nil {
		set(&c)
	}
	d := &door{t: t, p: p}
	var err error
	if d.Verifier, err = oidc.New(c, nil, func() { d.changes++ }); err != nil {
		t.Fatal(err)
	}
	return d
}

// enters shows a token; the answer is the user, or the code and the message.
func (d *door) enters(token string) (oidc.Person, int, string) {
	d.t.Helper()
	p, is, err := d.Identify(d.t.Context(), token)
	var status *api.Status
	switch {
	case errors.As(err, &status):
		return p, status.Code, status.Message
	case err != nil:
		d.t.Errorf("no status: %v", err)
	case !is:
		return p, 0, "no token of a provider"
	}
	return p, 200, p.User
}

func TestTokensOfTheProvider(t *testing.T) {
	p := provider.New(t)
	d := newDoor(t, p, nil)
	now := time.Now()
	payload := func(token, claims string) string {
		parts := strings.Split(token, ".")
		parts[1] = base64.RawURLEncoding.EncodeToString([]byte(claims))
		return strings.Join(parts, ".")
	}
	good := p.Token(nil)
	for name, c := range map[string]struct {
		token string
		code  int
		says  string
	}{
		"a good token":                         {good, 200, "oidc:ada@example.org"},
		"the same token again":                 {good, 200, "oidc:ada@example.org"},
		"an access token":                      {"muster.at-5d1f09c2ab.00", 0, "no token of a provider"},
		"any other text":                       {"secret", 0, "no token of a provider"},
		"a token of another issuer":            {p.Token(map[string]any{"iss": "https://evil.example.org"}), 401, "was issued by \"https://evil.example.org\", and this cluster trusts " + p.Issuer()},
		"a token for another program":          {p.Token(map[string]any{"aud": "wiki"}), 401, `is for "wiki", and this cluster is "muster"`},
		"a token for several programs":         {p.Token(map[string]any{"aud": []string{"wiki", "muster"}}), 200, ""},
		"a token that another program got":     {p.Token(map[string]any{"aud": []string{"wiki", "muster"}, "azp": "wiki"}), 401, `was given to "wiki"`},
		"an expired token":                     {p.Token(map[string]any{"exp": now.Add(-time.Hour).Unix()}), 401, "expired at"},
		"a token that expired within the skew": {p.Token(map[string]any{"exp": now.Add(-5 * time.Second).Unix()}), 200, ""},
		"a token from the future":              {p.Token(map[string]any{"nbf": now.Add(time.Hour).Unix()}), 401, "is the clock of the provider or of the coordinator wrong?"},
		"a token from the near future":         {p.Token(map[string]any{"nbf": now.Add(5 * time.Second).Unix()}), 200, ""},
		"a token without an end":               {p.Token(map[string]any{"exp": nil}), 401, "no claim exp"},
		"a token without a user":               {p.Token(map[string]any{"email": nil}), 401, "no claim email"},
		"an address that nobody has verified":  {p.Token(map[string]any{"email_verified": false}), 401, "has not verified the address ada@example.org"},
		"a name with a line break":             {p.Token(map[string]any{"email": "a\nb"}), 401, "is no name of a user"},
		"a forged signature":                   {p.Forge("first"), 401, "is not signed by a key of " + p.Issuer()},
		"a key that the provider has not":      {p.Forge("other"), 401, `is not signed by a key of ` + p.Issuer() + ` (key "other")`},
		"claims that were changed":             {payload(good, `{"iss":"`+p.Issuer()+`","aud":"muster","email":"root","exp":99999999999}`), 401, "is not signed by a key"},
		"claims that are no JSON":              {payload(good, `{`), 401, "no signed JSON Web Token"},
		"the longest token":                    {"eyJ" + strings.Repeat("a", 16<<10-7) + ".b.c", 401, "no signed JSON Web Token"},
		"a token that is a byte too long":      {"eyJ" + strings.Repeat("a", 16<<10-6) + ".b.c", 401, "16385 bytes, the limit is 16384"},
		"a token that is too long":             {"eyJ" + strings.Repeat("a", 17<<10) + ".b.c", 401, "bytes, the limit is 16384"},
	} {
		if _, code, says := d.enters(c.token); code != c.code || !strings.Contains(says, c.says) {
			t.Errorf("%s: %d %s, want %d and %q", name, code, says, c.code, c.says)
		}
	}
}

// The signature of a token is verified once, and the token ends at its time all the same.
func TestATokenThatIsKeptEnds(t *testing.T) {
	p := provider.New(t)
	d := newDoor(t, p, nil)
	end := time.Now().Truncate(time.Second).Add(2 * time.Second)
	token := p.Token(map[string]any{"exp": end.Add(-oidc.Skew).Unix()})
	for range 3 {
		if _, code, says := d.enters(token); code != 200 {
			t.Fatalf("%d %s", code, says)
		}
	}
	if n := d.Counts().Accepted; n != 1 {
		t.Errorf("the token was judged %d times, want once", n)
	}
	for time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
	if _, code, says := d.enters(token); code != 401 || !strings.Contains(says, "expired at") {
		t.Errorf("after its end: %d %s", code, says)
	}
}

// Nobody signs by the public key, nor without any key.
func TestAlgorithmsThatProveNothing(t *testing.T) {
	p := provider.New(t)
	d := newDoor(t, p, nil)
	claims := strings.Split(p.Token(nil), ".")[1]
	head := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat("k", 32))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil {
		t.Fatal(err)
	}
	object, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	symmetric, err := object.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"none":       head(`{"alg":"none"}`) + "." + claims + ".",
		"HS256":      symmetric,
		"an unknown": head(`{"alg":"XX256"}`) + "." + claims + ".AAAA",
	} {
		if _, code, says := d.enters(token); code != 401 {
			t.Errorf("%s: %d %s", name, code, says)
		}
	}
	d = newDoor(t, p, func(c *oidc.Config) { c.Algorithms = []string{"ES256"} })
	if _, code, says := d.enters(p.Token(nil)); code != 401 || !strings.Contains(says, "RS256") {
		t.Errorf("RS256 where ES256 alone is trusted: %d %s", code, says)
	}
}

func TestKeysRotate(t *testing.T) {
	p := provider.New(t)
	d := newDoor(t, p, nil)
	d.Eager()
	first := p.Token(nil)
	if _, code, says := d.enters(first); code != 200 || p.Fetches() != 1 {
		t.Fatalf("%d %s after %d fetches", code, says, p.Fetches())
	}
	p.Rotate("second", jose.ES256)
	if _, code, says := d.enters(p.Token(nil)); code != 200 || p.Fetches() != 2 {
		t.Errorf("a token by a new key: %d %s after %d fetches", code, says, p.Fetches())
	}
	if _, code, _ := d.enters(first); code != 200 || p.Fetches() != 2 {
		t.Errorf("a token by the key before: %d after %d fetches", code, p.Fetches())
	}
	p.Withdraw()
	d.Fetch(t)
	if _, code, says := d.enters(first); code != 401 || !strings.Contains(says, "not signed by a key") {
		t.Errorf("a token by a key that was withdrawn: %d %s", code, says)
	}
	if d.changes != 2 {
		t.Errorf("open requests were judged again %d times, want 2", d.changes)
	}
}

// Forged tokens with ever new keys do not make a coordinator flood the provider.
func TestForgedTokensAskTheProviderOnce(t *testing.T) {
	p := provider.New(t)
	d := newDoor(t, p, nil)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if _, code, _ := d.enters(p.Forge(id)); code != 401 {
			t.Errorf("a forged token: %d", code)
		}
	}
	if p.Fetches() != 1 {
		t.Errorf("the provider was asked %d times, want once", p.Fetches())
	}
	d.counts(oidc.Counts{Keys: 1, Fetched: 1, Refused: 5})
}

// counts compares the numbers of the Verifier.
func (d *door) counts(want oidc.Counts) {
	d.t.Helper()
	if got := d.Counts(); got != want {
		d.t.Errorf("counted %+v, want %+v", got, want)
	}
}

// Where there is no provider, there is nothing to count.
func TestNoProviderHasNoCounts(t *testing.T) {
	var none *oidc.Verifier
	if got := none.Counts(); got != (oidc.Counts{}) {
		t.Errorf("counted %+v", got)
	}
}

// A provider that is away at the start stops nothing: tokens are answered with 503 until
// the keys are there. A provider that is away later leaves the keys in force.
func TestTheProviderIsAway(t *testing.T) {
	p := provider.New(t)
	p.Away(true)
	d := newDoor(t, p, nil)
	d.Eager()
	if _, code, says := d.enters(p.Token(nil)); code != 503 || !strings.Contains(says, "the keys of "+p.Issuer()+" are not known") {
		t.Errorf("while the provider is away: %d %s", code, says)
	}
	p.Away(false)
	if _, code, says := d.enters(p.Token(nil)); code != 200 {
		t.Errorf("once the provider is back: %d %s", code, says)
	}
	p.Away(true)
	if _, code, says := d.enters(p.Token(map[string]any{"email": "bob@example.org"})); code != 200 {
		t.Errorf("a new token while the provider is away again: %d %s", code, says)
	}
	d.counts(oidc.Counts{Keys: 1, Fetched: 1, Failed: 1, Accepted: 2, Away: 1})
}

// Run fetches the keys without a request, and ends with its context.
func TestRunFetchesTheKeys(t *testing.T) {
	p := provider.New(t)
	fetched := make(chan struct{})
	d := newDoor(t, p, nil)
	ctx, stop := context.WithCancel(t.Context())
	go func() { defer close(fetched); d.Run(ctx) }()
	for _, code, _ := d.enters(p.Token(nil)); code != 200; _, code, _ = d.enters(p.Token(nil)) {
		if t.Context().Err() != nil {
			t.Fatal("the keys never came")
		}
	}
	stop()
	<-fetched
	if p.Fetches() != 1 {
		t.Errorf("the keys were fetched %d times, want once", p.Fetches())
	}
}

const issuer = "https://login.example.org"

// The claims of a token, as the configuration reads them.
func TestClaims(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		set    func(*oidc.Config)
		claims map[string]any
		user   string
		groups []string
		roles  string
		tenant string
		says   string // the refusal
	}{
		"the subject is the user": {func(c *oidc.Config) { c.UserClaim = "" }, nil, "oidc:u-1", nil, "", "", ""},
		"another prefix":          {func(c *oidc.Config) { c.Prefix = "corp/" }, nil, "corp/ada@example.org", nil, "", "", ""},
		"no prefix":               {func(c *oidc.Config) { c.Prefix = oidc.NoPrefix }, nil, "ada@example.org", nil, "", "", ""},
		"groups":                  {nil, map[string]any{"groups": []string{"b", "a", "b"}}, "oidc:ada@example.org", []string{"oidc:a", "oidc:b"}, "", "", ""},
		"one group as a text":     {nil, map[string]any{"groups": "a"}, "oidc:ada@example.org", []string{"oidc:a"}, "", "", ""},
		"groups that are numbers": {nil, map[string]any{"groups": []int{1}}, "", nil, "", "", "the claim groups of the token is neither"},
		"too many groups":         {nil, map[string]any{"groups": slices.Repeat([]string{"a"}, 257)}, "", nil, "", "", "has 257 groups, the limit is 256"},
		"roles in the tenant of the claim": {
			func(c *oidc.Config) {
				c.TenantClaim, c.RolesClaim, c.Roles = "org", "roles", map[string]string{"gpu-users": "editor", "gpu-readers": "viewer"}
			},
			map[string]any{"org": "vision", "roles": []string{"wiki", "gpu-users"}}, "oidc:ada@example.org", nil, "editor of tenant vision", "vision", "",
		},
		"a role of a tenant, without a tenant": {
			func(c *oidc.Config) {
				c.TenantClaim, c.RolesClaim, c.Roles = "org", "roles", map[string]string{"gpu-users": "editor"}
			},
			map[string]any{"roles": "gpu-users"}, "oidc:ada@example.org", nil, "", "", "",
		},
		"a role of the cluster": {
			func(c *oidc.Config) { c.RolesClaim, c.Roles = "roles", map[string]string{"root": "admin"} },
			map[string]any{"roles": []string{"root"}}, "oidc:ada@example.org", nil, "admin", "", "",
		},
		"roles of the cluster beside a tenant": {
			func(c *oidc.Config) {
				c.TenantClaim, c.RolesClaim, c.Roles = "org", "roles", map[string]string{"ops": "operator", "root": "admin", "team": "viewer"}
			},
			map[string]any{"org": "vision", "roles": []string{"ops", "root", "team"}}, "oidc:ada@example.org", nil, "operator; admin; viewer of tenant vision", "vision", "",
		},
		"a tenant that is none": {func(c *oidc.Config) { c.TenantClaim = "org" }, map[string]any{"org": "Vision!"}, "", nil, "", "", `"Vision!", is no name of a tenant`},
		"a required claim":      {func(c *oidc.Config) { c.RequiredClaims = map[string]string{"hd": "example.org"} }, map[string]any{"hd": "example.org"}, "oidc:ada@example.org", nil, "", "", ""},
		"a required claim that differs": {
			func(c *oidc.Config) { c.RequiredClaims = map[string]string{"hd": "example.org"} }, map[string]any{"hd": "example.com"}, "", nil, "", "", `no claim hd of the value "example.org"`,
		},
		"as many groups as may be": {nil, map[string]any{"groups": slices.Repeat([]string{"a"}, 256)}, "oidc:ada@example.org", []string{"oidc:a"}, "", "", ""},
		"the longest name":         {nil, map[string]any{"email": strings.Repeat("a", 251)}, "oidc:" + strings.Repeat("a", 251), nil, "", "", ""},
		"a name a byte too long":   {nil, map[string]any{"email": strings.Repeat("a", 252)}, "", nil, "", "", "want 1 to 251 printable characters"},
		"the last instant":         {nil, map[string]any{"exp": 253402300799}, "oidc:ada@example.org", nil, "", "", ""},
		"behind the last instant":  {nil, map[string]any{"exp": 253402300800}, "", nil, "", "", "is no time in seconds"},
		"a start at the skew":      {nil, map[string]any{"nbf": 1_800_000_000 + 30}, "oidc:ada@example.org", nil, "", "", ""},
		"an end that is no time":   {nil, map[string]any{"exp": "tomorrow"}, "", nil, "", "", "is no time in seconds"},
		"an end without an end":    {nil, map[string]any{"exp": 1e300}, "", nil, "", "", "is no time in seconds"},
		"an end with a fraction":   {nil, map[string]any{"exp": 1_800_000_060.5}, "oidc:ada@example.org", nil, "", "", ""},
		"an end before the skew":   {nil, map[string]any{"exp": 1_800_000_000 - 30}, "", nil, "", "", "expired at 2027-01-15T07:59:30Z"},
		"an end within the skew":   {nil, map[string]any{"exp": 1_800_000_000 - 29}, "oidc:ada@example.org", nil, "", "", ""},
		"a start after the skew":   {nil, map[string]any{"nbf": 1_800_000_000 + 31}, "", nil, "", "", "is good from"},
		"a start within the skew":  {nil, map[string]any{"iat": 1_800_000_000 + 30}, "oidc:ada@example.org", nil, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := oidc.Config{Issuer: issuer, ClientID: "muster", UserClaim: "email", GroupsClaim: "groups"}
			if c.set != nil {
				c.set(&config)
			}
			if err := config.Check(); err != nil {
				t.Fatal(err)
			}
			all := map[string]any{"iss": issuer, "aud": "muster", "sub": "u-1", "email": "ada@example.org", "exp": 1_800_003_600}
			maps.Copy(all, c.claims)
			text, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			got, err := config.Judge(text, now)
			var roles []string
			for _, g := range got.Grants {
				roles = append(roles, g.String())
			}
			switch {
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %q", err, c.says)
			case c.says != "":
			case err != nil:
				t.Error(err)
			case got.User != c.user || !slices.Equal(got.Groups, c.groups) || strings.Join(roles, "; ") != c.roles || string(got.Tenant) != c.tenant:
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestConfigurationsThatCannotBeMeant(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*oidc.Config)
		says string
	}{
		"an issuer over plain HTTP":          {func(c *oidc.Config) { c.Issuer = "http://login.example.org" }, `oidc.issuer: "http://login.example.org": want https://HOST/PATH`},
		"no client":                          {func(c *oidc.Config) { c.ClientID = "" }, `oidc.clientID: ""`},
		"a role that there is not":           {func(c *oidc.Config) { c.RolesClaim, c.Roles = "r", map[string]string{"a": "root"} }, `oidc.roles: "a": "root": want viewer, editor`},
		"the role of a host":                 {func(c *oidc.Config) { c.RolesClaim, c.Roles = "r", map[string]string{"a": "node"} }, `oidc.roles: "a": "node": want`},
		"a role of a tenant without a claim": {func(c *oidc.Config) { c.RolesClaim, c.Roles = "r", map[string]string{"a": "editor"} }, "set oidc.tenantClaim"},
		"roles without a claim":              {func(c *oidc.Config) { c.Roles = map[string]string{"a": "admin"} }, "without oidc.rolesClaim"},
		"a claim without roles":              {func(c *oidc.Config) { c.RolesClaim = "r" }, "without oidc.roles"},
		"an algorithm with a shared key":     {func(c *oidc.Config) { c.Algorithms = []string{"HS256"} }, `oidc.algorithms: "HS256": want RS256`},
		"a scope of two words":               {func(c *oidc.Config) { c.Scopes = []string{"a b"} }, "oidc.scopes"},
		"a prefix that is too long":          {func(c *oidc.Config) { c.Prefix = strings.Repeat("p", 33) }, "oidc.prefix"},
		"an authority of nowhere":            {func(c *oidc.Config) { c.CAFile = "/nowhere/ca.pem" }, "oidc.caFile: open /nowhere/ca.pem"},
	} {
		config := oidc.Config{Issuer: issuer, ClientID: "muster"}
		c.set(&config)
		if _, err := oidc.New(config, nil, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
}

// FuzzClaims: no claims break the decision, and whoever is let in has a name, an end and
// bounded groups.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"iss":"https://login.example.org","aud":"muster","sub":"u-1","email":"a@b","exp":1800003600,"groups":["a"]}`))
	f.Add([]byte(`{"iss":"https://login.example.org","aud":["muster",null],"exp":1e308}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		config := oidc.Config{Issuer: issuer, ClientID: "muster", UserClaim: "email", GroupsClaim: "groups", TenantClaim: "org", RolesClaim: "roles", Roles: map[string]string{"a": "editor", "b": "admin"}}
		now := time.Unix(1_800_000_000, 0)
		p, err := config.Judge(text, now)
		if err == nil && (!strings.HasPrefix(p.User, oidc.DefaultPrefix) || len(p.Groups) > 256 || !p.Expires.After(now)) {
			t.Errorf("%s: %+v", text, p)
		}
	})
}

// FuzzKeys: no answer of a provider breaks the reader of its keys, and no private or
// symmetric key is ever trusted.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"a"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := oidc.ReadKeys(text)
		for _, k := range set {
			if !k.IsPublic() {
				t.Errorf("%s: a key that is not public is trusted (%v)", text, err)
			}
		}
	})
}

// BenchmarkIdentify is a token whose signature was verified before, among 10,000.
func BenchmarkIdentify(b *testing.B) {
	p := provider.New(b)
	v, err := oidc.New(oidc.Config{Issuer: p.Issuer(), ClientID: provider.ClientID, CAFile: p.CAFile(), UserClaim: "email"}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	var tokens []string
	for i := range 1000 {
		tokens = append(tokens, p.Token(map[string]any{"jti": i}))
	}
	for _, t := range tokens {
		if _, _, err := v.Identify(b.Context(), t); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, _, err := v.Identify(b.Context(), tokens[i%len(tokens)]); err != nil {
			b.Fatal(err)
		}
	}
}
