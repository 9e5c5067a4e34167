package access

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/service"
)

// errUnknown is the refusal of each token that is not valid, whatever the reason.
var errUnknown = errors.New("unknown token")

// Authenticator lets in the bearers of access tokens, and those that another
// Authenticator lets in.
type Authenticator struct {
	Table *Table
	// Persons knows the tokens of the identity provider; nil where there is none.
	Persons Persons
	// Authorities judge client certificates; nil where the cluster runs without TLS.
	Authorities Authorities
	// Other knows the tokens of another form: the administrator's token file.
	Other service.Authenticator
}

var _ service.Certified = Authenticator{}

// Persons finds people by the tokens of an identity provider.
type Persons interface {
	// Identify finds the bearer of a token; the second result is false for a text that
	// is no token of such a provider. It may block while the provider is asked.
	Identify(ctx context.Context, token string) (oidc.Person, bool, error)
}

// Changed is closed when other rules are in force: rights may have ended.
func (a Authenticator) Changed() <-chan struct{} { return a.Table.Changed() }

// Authenticate finds the caller by the token. A token that is unknown, one that was
// revoked and one with a wrong secret take the same time and get the same answer.
// The bearer of a good secret that has expired gets the time.
func (a Authenticator) Authenticate(ctx context.Context, text string) (service.Principal, error) {
	given, ok := parse(text)
	if !ok {
		return a.other(ctx, text)
	}
	now := a.Table.now.Load()
	digest := given.digest()
	t, found := now.tokens[given.id]
	if !found {
		t = nobodys
	}
	var shown *secret
	for i := range t.secrets {
		if s := &t.secrets[i]; proves(&digest, &s.digest) && s.valid {
			shown = s
		}
	}
	if shown == nil {
		return service.Principal{}, errUnknown
	}
	at := time.Now()
	switch {
	case isOver(t.principal.Expires, at):
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "the token %s expired at %s: ask for another one", given.id, t.record.Expires)
	case isOver(shown.expires, at):
		return service.Principal{}, api.Errorf(http.StatusUnauthorized, "this secret of the token %s expired at %s: the token was rotated, use the new secret", given.id, shown.expires.UTC().Format(time.RFC3339))
	}
	return now.principal(t, shown), nil
}

// other finds the bearer of a token that is no access token.
func (a Authenticator) other(ctx context.Context, text string) (service.Principal, error) {
	if a.Persons != nil {
		p, is, err := a.Persons.Identify(ctx, text)
		switch {
		case err != nil:
			return service.Principal{}, err
		case is:
			return a.Table.now.Load().person(p), nil
		}
	}
	return a.Other.Authenticate(ctx, text)
}

// nobodys is the token that stands for each one that does not exist.
var nobodys = &token{}
