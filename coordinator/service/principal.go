package service

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"

	"github.com/musterd/muster/resource"
)

// Principal is the authenticated caller.
type Principal struct {
	Name   string
	Tenant resource.TenantID
	// Admin may use every namespace, list over all of them and change nodes.
	Admin bool
}

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

// AnyOf is an Authenticator that asks each of several in turn, and answers as the
// last where all refuse.
func AnyOf(all ...Authenticator) Authenticator { return anyOf(all) }

type anyOf []Authenticator

func (a anyOf) Authenticate(ctx context.Context, token string) (p Principal, err error) {
	err = errUnknownToken
	for _, one := range a {
		if p, err = one.Authenticate(ctx, token); err == nil {
			return p, nil
		}
	}
	return Principal{}, err
}
