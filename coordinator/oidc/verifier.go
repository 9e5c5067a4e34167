package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"

	"github.com/musterd/muster/api"
)

// maxToken bounds a token that is looked at, in bytes.
const maxToken = 16 << 10

// Verifier judges tokens. Its methods may be called by many goroutines; Identify blocks
// while the provider is asked for an unknown key.
type Verifier struct {
	config  Config
	keys    *keys
	library gooidc.Config
	cache   cache

	accepted, refused, away atomic.Uint64 // tokens
}

// Counts are the numbers of a Verifier since its start.
type Counts struct {
	// Keys is the number of the provider's keys that are known now.
	Keys int
	// Fetched and Failed are fetches of the keys.
	Fetched, Failed uint64
	// Accepted are tokens that were judged and found good; a token that is known from
	// before is not judged again. Refused are tokens that are not good, Away those that
	// nobody could judge, as the keys of the provider are not known.
	Accepted, Refused, Away uint64
}

// Counts returns the numbers; zeros for nil, where there is no provider.
func (v *Verifier) Counts() Counts {
	if v == nil {
		return Counts{}
	}
	v.keys.mu.Lock()
	defer v.keys.mu.Unlock()
	return Counts{
		Keys: len(v.keys.set), Fetched: v.keys.fetched.Load(), Failed: v.keys.failed.Load(),
		Accepted: v.accepted.Load(), Refused: v.refused.Load(), Away: v.away.Load(),
	}
}

// New checks a configuration. It asks nobody: Run does. changed, where not nil, is called
// when the keys of the provider have changed, and rights may have ended.
func New(c Config, log *slog.Logger, changed func()) (*Verifier, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	v := &Verifier{config: c}
	var err error
	v.keys, err = newKeys(c, log, func() {
		v.cache.clear()
		if changed != nil {
			changed()
		}
	})
	if err != nil {
		return nil, err
	}
	trusted := c.Algorithms
	if len(trusted) == 0 {
		trusted = DefaultAlgorithms()
	}
	v.library = gooidc.Config{ClientID: c.ClientID, SupportedSigningAlgs: trusted, SkipExpiryCheck: true} // Config.judge checks it, with the skew
	return v, nil
}

// Run fetches the keys of the provider until ctx ends. A provider that is away is asked
// again.
func (v *Verifier) Run(ctx context.Context) { v.keys.run(ctx) }

// Login is what a client needs for a login.
func (v *Verifier) Login() *api.LoginMethod {
	scopes := v.config.Scopes
	if scopes == nil {
		scopes = DefaultScopes()
	}
	return &api.LoginMethod{Issuer: v.config.Issuer, ClientID: v.config.ClientID, Scopes: scopes}
}

// Identify finds the bearer of a token; the second result is false for a text that is no
// JSON Web Token, and so not for this package. The error is an *api.Status with the
// reason: 401 for a token that is not good, 503 while the keys of the provider are not
// known.
func (v *Verifier) Identify(ctx context.Context, token string) (Person, bool, error) {
	if !strings.HasPrefix(token, "eyJ") || strings.Count(token, ".") != 2 { // {" in base64
		return Person{}, false, nil
	}
	if len(token) > maxToken {
		v.refused.Add(1)
		return Person{}, true, api.Errorf(http.StatusUnauthorized, "the token has %d bytes, the limit is %d", len(token), maxToken)
	}
	now, digest := time.Now(), sha256.Sum256([]byte(token))
	if p, found := v.cache.get(digest); found {
		if now.Before(p.Expires) {
			return p, true, nil
		}
	}
	generation := v.cache.current()
	p, err := v.judge(ctx, token, now)
	if err != nil {
		status := statusOf(err)
		if status.Code == http.StatusServiceUnavailable {
			v.away.Add(1)
		} else {
			v.refused.Add(1)
		}
		return Person{}, true, status
	}
	v.accepted.Add(1)
	v.cache.put(digest, p, generation)
	return p, true, nil
}

// judge decides about a token that is not cached. The claims are judged first, so that a
// token of another provider or one that has expired asks the provider for nothing.
func (v *Verifier) judge(ctx context.Context, token string, now time.Time) (Person, error) {
	in, err := read(token)
	if err != nil {
		return Person{}, err
	}
	p, err := v.config.judge(in, now)
	if err != nil {
		return Person{}, err
	}
	signed := &remembering{keys: v.keys}
	_, err = gooidc.NewVerifier(v.config.Issuer, signed, &v.library).Verify(ctx, token)
	switch {
	case signed.fault != nil:
		return Person{}, signed.fault
	case err != nil:
		return Person{}, err
	}
	return p, nil
}

// remembering is a key set of one verification, which keeps its error: the library hands
// the text on alone.
type remembering struct {
	keys  *keys
	fault error
}

// VerifySignature implements oidc.KeySet.
func (r *remembering) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	payload, r.fault = r.keys.VerifySignature(ctx, token)
	return payload, r.fault
}

// read reads the claims of a token without trusting them.
func read(token string) (claims, error) {
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var in claims
	if err != nil || json.Unmarshal(payload, &in) != nil || in == nil {
		return nil, refuse("the token is no signed JSON Web Token")
	}
	return in, nil
}

// statusOf is the answer to an error.
func statusOf(err error) *api.Status {
	var refused *refusedError
	var away *awayError
	switch {
	case errors.As(err, &refused):
		return api.Errorf(http.StatusUnauthorized, "%s", refused.reason)
	case errors.As(err, &away):
		status := api.Errorf(http.StatusServiceUnavailable, "%v; ask again, or use an access token", away)
		status.RetryAfterSeconds = int(eager / time.Second)
		return status
	}
	return api.Errorf(http.StatusUnauthorized, "the token is not good: %s", clip(strings.TrimPrefix(err.Error(), "oidc: ")))
}

// maxCached bounds the tokens that are kept, over both halves.
const maxCached = 20_000

// cache keeps the bearers of tokens whose signature was verified. It has two halves: when
// the younger one is full, the older one is dropped.
type cache struct {
	mu         sync.RWMutex
	young, old map[[sha256.Size]byte]Person
	generation int
}

func (c *cache) get(digest [sha256.Size]byte) (Person, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if p, found := c.young[digest]; found {
		return p, true
	}
	p, found := c.old[digest]
	return p, found
}

// current is the generation of the keys by which a token is about to be verified.
func (c *cache) current() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.generation
}

// put keeps a bearer, unless the keys have changed since the token was verified.
func (c *cache) put(digest [sha256.Size]byte, p Person, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		return
	}
	if c.young == nil || len(c.young) >= maxCached/2 {
		c.young, c.old = map[[sha256.Size]byte]Person{}, c.young
	}
	c.young[digest] = p
}

// clear forgets all tokens: the keys have changed.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old = nil, nil
	c.generation++
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// clip shortens a text of a token for a message.
func clip(s string) string {
	const most = 120
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

func clipAll(all []string) string { return clip(strings.Join(all, ", ")) }
