package gate

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Gate is the limits of one coordinator on requests. The codecs share it. A nil Gate
// has no limits.
type Gate struct {
	Rates *Rates
	// Readers bounds the readers of watches; nil bounds none.
	Readers *Readers
	// Rooms are what the requests of all callers need for a moment.
	Rooms  Rooms
	bounds Bounds
	works  works
	// tenants has the requests of tenants, system those of administrators.
	tenants, system *Queue
}

// New returns a gate that counts by these rates.
func New(rates *Rates) *Gate {
	return &Gate{Rates: rates, Rooms: newRooms(), tenants: newQueue(seats, seatsOfTenant), system: newQueue(systemSeats, systemSeats)}
}

// Count counts a request of a caller with a valid token (Rates.Take).
func (g *Gate) Count(p service.Principal) (Standing, *api.Status) {
	if g == nil {
		return Standing{}, nil
	}
	return g.Rates.Take(p, time.Now())
}

// CountAnonymous counts a request without a valid token (Rates.TakeAnonymous).
func (g *Gate) CountAnonymous(address string) (Standing, *api.Status) {
	if g == nil {
		return Standing{}, nil
	}
	return g.Rates.TakeAnonymous(address, time.Now())
}

// Hold counts n more of a bound for a caller (Bounds.Hold).
func (g *Gate) Hold(p service.Principal, of Bound, n int64) (release func(), status *api.Status) {
	if g == nil {
		return func() {}, nil
	}
	return g.bounds.Hold(p, of, n)
}

// HoldShared is Hold, and reports whether a refusal is due to the requests of others
// (Bounds.HoldShared).
func (g *Gate) HoldShared(p service.Principal, of Bound, n int64) (release func(), status *api.Status, shared bool) {
	if g == nil {
		return func() {}, nil, false
	}
	return g.bounds.HoldShared(p, of, n)
}

// Send notes a message to the reader of a watch (Readers.Send).
func (g *Gate) Send(p service.Principal, door, kind string, bytes int64, cut func()) *Sending {
	if g == nil {
		return nil
	}
	return g.Readers.Send(p, door, kind, bytes, cut)
}

// Turn is the place of one request among all requests. One goroutine at a time uses
// it.
type Turn struct {
	gate  *Gate
	of    service.Principal
	leave func() // nil without a seat
	over  bool
}

// Turn returns the turn of a request, which has no seat yet.
func (g *Gate) Turn(p service.Principal) *Turn { return &Turn{gate: g, of: p} }

// Begin waits until the request may be decided on. A refusal is a 503. A second call
// has no effect.
func (t *Turn) Begin(ctx context.Context) (status *api.Status) {
	if t == nil || t.gate == nil || t.leave != nil || t.over {
		return nil
	}
	q := t.gate.tenants
	if isSystem(t.of) {
		q = t.gate.system
	}
	t.leave, status = q.Enter(ctx, ownerOf(t.of))
	return status
}

// End gives the seat back: the request is done, or waits for something else than the
// coordinator. A second call has no effect.
func (t *Turn) End() {
	if t == nil || t.over {
		return
	}
	t.over = true
	if t.leave != nil {
		t.leave()
	}
}

// Hold counts n more of a bound for the caller of the turn's request (Bounds.Hold).
func (t *Turn) Hold(of Bound, n int64) (release func(), status *api.Status) {
	if t == nil {
		return func() {}, nil
	}
	return t.gate.Hold(t.of, of, n)
}

type turnKey struct{}

// WithTurn notes a turn in the context of its request.
func WithTurn(ctx context.Context, t *Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// TurnOf is the turn of the request of a context; nil, which may be used, where there
// is none.
func TurnOf(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}
