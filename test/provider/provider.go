// Package provider is a small OpenID Connect provider for tests: real HTTP over TLS, real
// RS256 and ES256 keys. It has discovery, keys that rotate, the authorization code with
// PKCE (RFC 7636), the device flow (RFC 8628) and refresh tokens. Its one user agrees to
// everything.
package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Provider is a provider that runs. Its methods may be called from any goroutine.
type Provider struct {
	tb     testing.TB
	server *httptest.Server

	mu       sync.Mutex
	keys     []key
	away     bool
	claims   map[string]any // of the user, beside those of the protocol
	fetches  int            // of the keys
	lifetime time.Duration
	codes    map[string]grant // by authorization code
	devices  map[string]*device
	refresh  map[string]bool // the refresh tokens that are good
	noDevice bool
}

// key is one key for signatures.
type key struct {
	id        string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
}

// ClientID is the cluster's name at the provider.
const ClientID = "muster"

// New starts a provider with one key for RS256. It ends with the test.
func New(tb testing.TB) *Provider {
	tb.Helper()
	p := &Provider{
		tb: tb, claims: map[string]any{"sub": "u-1", "email": "ada@example.org", "email_verified": true}, lifetime: time.Hour,
		codes: map[string]grant{}, devices: map[string]*device{}, refresh: map[string]bool{},
	}
	p.Rotate("first", jose.RS256)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", p.serveKeys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /device", p.startDevice)
	mux.HandleFunc("POST /token", p.token)
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		if away {
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	tb.Cleanup(p.server.Close)
	return p
}

// Issuer is the provider's URL.
func (p *Provider) Issuer() string { return p.server.URL }

// Client is an HTTP client that trusts the provider.
func (p *Provider) Client() *http.Client { return p.server.Client() }

// CAFile is a file with the authority of the provider's certificate.
func (p *Provider) CAFile() string {
	path := filepath.Join(p.tb.TempDir(), "provider.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		p.tb.Fatal(err)
	}
	return path
}

// Away makes the provider answer nothing but errors, or ends that.
func (p *Provider) Away(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

// Rotate adds a key, which signs from now on.
func (p *Provider) Rotate(id string, algorithm jose.SignatureAlgorithm) {
	p.tb.Helper()
	var private crypto.Signer
	var err error
	if algorithm == jose.ES256 {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		p.tb.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, key{id, algorithm, private})
}

// Withdraw removes every key but the newest one.
func (p *Provider) Withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = p.keys[len(p.keys)-1:]
}

// Fetches is the number of times that the keys were asked for.
func (p *Provider) Fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// Set sets a claim of the user; nil removes the claim.
func (p *Provider) Set(name string, value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if value == nil {
		delete(p.claims, name)
	} else {
		p.claims[name] = value
	}
}

// Lifetime sets the time for which tokens are good.
func (p *Provider) Lifetime(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lifetime = d
}

// Token signs an ID token with the user's claims; those given come last, and nil removes
// a claim.
func (p *Provider) Token(more map[string]any) string {
	p.tb.Helper()
	p.mu.Lock()
	now := time.Now()
	all := map[string]any{"iss": p.server.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(p.lifetime).Unix()}
	maps.Copy(all, p.claims)
	signing := p.keys[len(p.keys)-1]
	p.mu.Unlock()
	for name, value := range more {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	return signed(p.tb, signing, all)
}

// Forge signs claims as Token does, with a key of its own under the provider's key id.
func (p *Provider) Forge(id string) string {
	p.tb.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.tb.Fatal(err)
	}
	now := time.Now()
	return signed(p.tb, key{id, jose.RS256, private}, map[string]any{"iss": p.server.URL, "aud": ClientID, "sub": "root", "email": "root@example.org", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
}

func signed(tb testing.TB, k key, claims map[string]any) string {
	tb.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.algorithm, Key: jose.JSONWebKey{Key: k.private, KeyID: k.id}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		tb.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		tb.Fatal(err)
	}
	object, err := signer.Sign(payload)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// describe answers discovery.
func (p *Provider) describe(w http.ResponseWriter, _ *http.Request) {
	url := p.server.URL
	said := map[string]any{
		"issuer": url, "jwks_uri": url + "/keys", "authorization_endpoint": url + "/authorize", "token_endpoint": url + "/token",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256", "ES256"},
		"code_challenge_methods_supported": []string{"S256"},
	}
	p.mu.Lock()
	if !p.noDevice {
		said["device_authorization_endpoint"] = url + "/device"
	}
	p.mu.Unlock()
	answer(w, http.StatusOK, said)
}

func (p *Provider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	p.fetches++
	var set jose.JSONWebKeySet
	for _, k := range p.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(k.algorithm), Use: "sig"})
	}
	p.mu.Unlock()
	answer(w, http.StatusOK, set)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}
