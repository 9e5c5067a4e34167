package service

import (
	"context"
	"sync/atomic"
	"time"
)

// Caller is the sender of a request, with the id and the address by which logs and records
// name the request.
type Caller struct {
	Principal
	// RequestID is the id of the request (RequestID).
	RequestID string
	// Address is the address of the client, "host:port"; "" where unknown.
	Address string
	// Via is the coordinator that has passed the request on, "" for none. That coordinator
	// vouches for Address.
	Via string

	// The request, as Begin notes it.
	verb            Verb
	kind            Kind
	namespace, name string
	id              string // of its entry in the audit
	began           time.Time
	// fate is that of the request, for the audit; nil outside of a request.
	fate *fate
}

// fate is the course of a request, for the audit and the charge.
type fate struct {
	hidden atomic.Bool // the answer is a 404, and there is such an object
	noted  atomic.Bool // the refusal has its entry
	// charged: the cost of the request has been charged.
	charged atomic.Bool
}

// FirstCharge reports true once for each request of a context: a request may be served again
// after a change of the leader.
func FirstCharge(ctx context.Context) bool {
	c, found := ctx.Value(callerKey{}).(*Caller)
	return !found || !c.fate.charged.Swap(true)
}

type callerKey struct{}

// WithCaller notes the sender of a request in the context of the request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	c.fate = new(fate)
	return context.WithValue(ctx, callerKey{}, &c)
}

// CallerOf returns the sender of the request of a context; the zero value, which has no
// right, where nobody has been authenticated.
func CallerOf(ctx context.Context) Caller {
	if c, found := ctx.Value(callerKey{}).(*Caller); found {
		return *c
	}
	return Caller{}
}
