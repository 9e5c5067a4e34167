package service

import (
	"context"
	"time"
)

// Caller is who has sent a request, and how the request is found again in logs and
// records.
type Caller struct {
	Principal
	// RequestID is the id of the request (RequestID).
	RequestID string
	// Address is where the request came from, "host:port"; "" where unknown.
	Address string
	// Via is the coordinator that has passed the request on, "" for none. It vouches for
	// Address.
	Via string

	// The request, as Begin notes it.
	verb            Verb
	kind            Kind
	namespace, name string
	id              string // of its entry in the audit
	began           time.Time
}

type callerKey struct{}

// WithCaller notes in a context who has sent the request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, &c)
}

// CallerOf returns who has sent the request of a context; the zero value, which has
// no right, where nobody has been authenticated.
func CallerOf(ctx context.Context) Caller {
	if c, found := ctx.Value(callerKey{}).(*Caller); found {
		return *c
	}
	return Caller{}
}
