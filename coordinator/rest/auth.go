package rest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Principal is the authenticated caller.
type Principal struct {
	Name   string
	Tenant resource.TenantID
	// Admin may use every namespace, list over all of them and change nodes.
	Admin bool
}

// MayUse reports whether the principal may use a namespace: an admin any, a
// tenant the one that bears its name.
func (p Principal) MayUse(namespace string) bool { return p.Admin || namespace == string(p.Tenant) }

// Authenticator turns a bearer token into a principal. It is called for every
// request, possibly at once from many goroutines, and may block. A nil error
// means the token is good; an *api.Status is answered as it is, any other
// error as 401 without its text.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// StaticToken is an Authenticator with one token, whose bearer is the admin.
// An empty token lets nobody in.
func StaticToken(token string) Authenticator {
	return staticToken{sum: sha256.Sum256([]byte(token)), empty: token == ""}
}

type staticToken struct {
	sum   [sha256.Size]byte
	empty bool
}

var errUnknownToken = errors.New("unknown token")

// Authenticate compares in constant time.
func (s staticToken) Authenticate(_ context.Context, token string) (Principal, error) {
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], s.sum[:]) != 1 || s.empty {
		return Principal{}, errUnknownToken
	}
	return Principal{Name: "admin", Admin: true}, nil
}

// bearer extracts the token of an Authorization header.
func bearer(header string) (string, bool) {
	scheme, token, found := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && token != ""
}

// authenticate returns the caller or a 401 that names the missing part.
func authenticate(a Authenticator, r *http.Request) (Principal, *api.Status) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return Principal{}, api.Errorf(http.StatusUnauthorized, "no token: send the header Authorization: Bearer TOKEN")
	}
	token, ok := bearer(header)
	if !ok {
		return Principal{}, api.Errorf(http.StatusUnauthorized, "the Authorization header is not of the form: Bearer TOKEN")
	}
	p, err := a.Authenticate(r.Context(), token)
	if err == nil {
		return p, nil
	}
	var status *api.Status
	if errors.As(err, &status) {
		return Principal{}, status
	}
	return Principal{}, api.Errorf(http.StatusUnauthorized, "the token is not valid here")
}
