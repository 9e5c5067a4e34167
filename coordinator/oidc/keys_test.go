package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterd/muster/coordinator/oidc"
)

// keySet is a JWK set of n public keys with a use.
func keySet(t *testing.T, n int, use string) []byte {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	for i := range n {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: &private.PublicKey, KeyID: fmt.Sprint(i), Use: use})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestKeysForSignaturesCount(t *testing.T) {
	for name, c := range map[string]struct {
		keys int
		use  string
		want int
		err  string
	}{
		"for signatures":      {2, "sig", 2, ""},
		"for any use":         {2, "", 2, ""},
		"for encryption":      {2, "enc", 0, "no public key for signatures"},
		"as many as allowed":  {oidc.MaxKeys, "sig", oidc.MaxKeys, ""},
		"more than allowed":   {oidc.MaxKeys + 1, "sig", 0, "the limit is"},
		"a set without a key": {0, "", 0, "no public key for signatures"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := oidc.ReadKeys(keySet(t, c.keys, c.use))
			if len(set) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%d keys, %v; want %d, %q", len(set), err, c.want, c.err)
			}
		})
	}
}

// TestKeysOverPlainHTTPAreRefused, though the provider's description names their address
// over TLS: an attacker on the way could put other keys in their place.
func TestKeysOverPlainHTTPAreRefused(t *testing.T) {
	keys := keySet(t, 1, "sig")
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) }))
	defer plain.Close()
	var issuer string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": issuer, "jwks_uri": plain.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	}))
	defer server.Close()
	issuer = server.URL
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := oidc.New(oidc.Config{Issuer: issuer, ClientID: "muster", CAFile: ca, UserClaim: "email"}, nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Ask(t); err == nil || !strings.Contains(err.Error(), "want an https URL") {
		t.Errorf("keys over plain HTTP: %v, want an error", err)
	}
}
