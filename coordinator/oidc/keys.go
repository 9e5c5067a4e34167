package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// How often the provider is asked.
const (
	// refresh is the time after which the keys are fetched again: a key that the
	// provider has withdrawn is trusted no longer than that.
	refresh = 5 * time.Minute
	// eager is the least time between two fetches for tokens with an unknown key:
	// forged tokens do not make a coordinator flood the provider.
	eager = 10 * time.Second
	// firstRetry and longestRetry bound the time after a fetch that failed.
	firstRetry, longestRetry = time.Second, time.Minute
	// fetchWithin bounds one fetch.
	fetchWithin = 10 * time.Second
	// maxAnswer bounds an answer of the provider, in bytes.
	maxAnswer = 1 << 20
	maxKeys   = 100
)

// keys are the public keys of the provider. They are fetched by one goroutine at a time,
// and read by any number.
type keys struct {
	issuer string
	client *http.Client
	log    *slog.Logger
	// changed is called when another set of keys is in force.
	changed func()
	eager   time.Duration

	mu    sync.Mutex
	set   []jose.JSONWebKey // nil before the first fetch
	fault error             // of the last fetch; nil where it succeeded
	tried time.Time         // when the last fetch ended
	// busy is closed when the fetch under way ends; nil where there is none.
	busy chan struct{}

	fetched, failed atomic.Uint64 // fetches
}

// errAway is the state before the provider has answered for the first time.
var errAway = errors.New("the provider has not been asked yet")

func newKeys(c Config, log *slog.Logger, changed func()) (*keys, error) {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, MaxIdleConns: 2, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("oidc.caFile: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("oidc.caFile: %s holds no certificate in PEM", c.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &keys{issuer: c.Issuer, client: &http.Client{Transport: bounded{transport}, Timeout: fetchWithin}, log: log, changed: changed, eager: eager, fault: errAway}, nil
}

// bounded cuts long answers off.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// run fetches the keys until ctx ends.
func (k *keys) run(ctx context.Context) {
	retry := firstRetry
	for {
		wait := refresh
		if err := k.fetch(ctx); err != nil {
			wait, retry = retry, min(2*retry, longestRetry)
		} else {
			retry = firstRetry
		}
		select {
		case <-ctx.Done():
			k.client.CloseIdleConnections()
			return
		case <-time.After(wait):
		}
	}
}

// fetch asks the provider now, or waits for the fetch that is under way.
func (k *keys) fetch(ctx context.Context) error {
	k.mu.Lock()
	if busy := k.busy; busy != nil {
		k.mu.Unlock()
		select {
		case <-busy:
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.fault
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	busy := make(chan struct{})
	k.busy = busy
	k.mu.Unlock()
	// A caller that goes away does not end the fetch that others wait for.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchWithin)
	set, err := k.ask(asking)
	cancel()
	k.mu.Lock()
	k.tried = time.Now()
	first, differs := k.set == nil, false
	if err == nil {
		k.fetched.Add(1)
		if differs = !sameKeys(k.set, set); differs {
			k.set = set
		}
		if k.fault != nil || differs {
			k.log.Info("oidc_keys_fetched", "issuer", k.issuer, "keys", len(set))
		}
	} else {
		k.failed.Add(1)
		if k.fault == nil || first && errors.Is(k.fault, errAway) {
			k.log.Warn("oidc_provider_away", "issuer", k.issuer, "error", err, "next", "the keys that are known stay in force; the provider is asked again")
		}
	}
	k.fault, k.busy = err, nil
	k.mu.Unlock()
	close(busy)
	if differs && !first {
		k.changed()
	}
	return err
}

// ask reads the provider's description and its keys.
func (k *keys) ask(ctx context.Context) ([]jose.JSONWebKey, error) {
	provider, err := gooidc.NewProvider(gooidc.ClientContext(ctx, k.client), k.issuer)
	if err != nil {
		return nil, fmt.Errorf("discovery at %s: %w", k.issuer, err)
	}
	var found struct {
		JWKS string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil {
		return nil, fmt.Errorf("discovery at %s: %w", k.issuer, err)
	}
	if u, err := url.Parse(found.JWKS); err != nil || u.Scheme != "https" {
		return nil, fmt.Errorf("discovery at %s: jwks_uri %q: want an https URL", k.issuer, clip(found.JWKS))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, found.JWKS, nil)
	if err != nil {
		return nil, err
	}
	answer, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the keys at %s: %s", found.JWKS, answer.Status)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("the keys at %s: %w", found.JWKS, err)
	}
	set, err := readKeys(body)
	if err != nil {
		return nil, fmt.Errorf("the keys at %s: %w", found.JWKS, err)
	}
	return set, nil
}

// readKeys reads a JWK set (RFC 7517) and keeps its public keys for signatures. Keys of a
// kind that is not known are left out.
func readKeys(body []byte) ([]jose.JSONWebKey, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, err
	}
	if len(raw.Keys) > maxKeys {
		return nil, fmt.Errorf("%d keys, the limit is %d", len(raw.Keys), maxKeys)
	}
	var set []jose.JSONWebKey
	for _, text := range raw.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			set = append(set, key)
		}
	}
	if len(set) == 0 {
		return nil, errors.New("no public key for signatures")
	}
	return set, nil
}

// sameKeys compares two sets.
func sameKeys(a, b []jose.JSONWebKey) bool {
	one, errA := json.Marshal(a)
	two, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(one) == string(two)
}

// awayError says that the provider's keys are not known.
type awayError struct {
	issuer string
	fault  error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("the keys of %s are not known: %v", e.issuer, e.fault)
}

// VerifySignature returns the payload of a token that one of
// the keys has signed. A token with an unknown key has the keys fetched anew, at most
// once in the time of eager.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, algorithms(known))
	if err != nil || len(signed.Signatures) != 1 {
		return nil, refuse("the token is no signed JSON Web Token")
	}
	payload, found := k.verify(signed)
	if found {
		return payload, nil
	}
	k.mu.Lock()
	again := time.Since(k.tried) >= k.eager || k.busy != nil
	k.mu.Unlock()
	if again {
		if err := k.fetch(ctx); err == nil {
			if payload, found = k.verify(signed); found {
				return payload, nil
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set == nil {
		return nil, &awayError{k.issuer, k.fault}
	}
	return nil, refuse("the token is not signed by a key of %s (key %q)", k.issuer, clip(signed.Signatures[0].Header.KeyID))
}

// verify tries the keys that have the token's key id, or all where the token names none.
func (k *keys) verify(signed *jose.JSONWebSignature) ([]byte, bool) {
	k.mu.Lock()
	set := k.set
	k.mu.Unlock()
	id := signed.Signatures[0].Header.KeyID
	for i := range set {
		if id != "" && set[i].KeyID != id {
			continue
		}
		if set[i].Algorithm != "" && set[i].Algorithm != signed.Signatures[0].Header.Algorithm {
			continue
		}
		if payload, err := signed.Verify(&set[i]); err == nil {
			return payload, true
		}
	}
	return nil, false
}

func algorithms(names []string) []jose.SignatureAlgorithm {
	all := make([]jose.SignatureAlgorithm, len(names))
	for i, n := range names {
		all[i] = jose.SignatureAlgorithm(n)
	}
	return all
}
