package rpcauth

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/musterd/muster/netlimit"
	"github.com/musterd/muster/pki"
)

// farDeadline is the longest deadline of a call that the tap itself refuses.
// gRPC does not cancel the context of a call that a tap refuses, so a timer of
// such a call lives until the call's deadline. Calls with later deadlines are
// refused by Register's handlers, and their timers end with them.
const farDeadline = 10 * time.Second

// gate decides on calls by their headers, before any byte of a message is
// buffered. The interceptors decide again, with the message.
type gate struct {
	// admit accepts a call and returns the context of its handler, or refuses it.
	admit func(ctx context.Context, method string) (context.Context, error)

	mu sync.Mutex
	// streams counts the open calls of a peer or of an unproven connection; no
	// value is 0.
	streams map[any]int
}

func newGate(admit func(context.Context, string) (context.Context, error)) *gate {
	return &gate{admit: admit, streams: map[any]int{}}
}

func (g *gate) option() grpc.ServerOption { return grpc.InTapHandle(g.tap) }

// tap is a tap.ServerInHandle: it runs in the connection's reading goroutine
// and must not block.
func (g *gate) tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	conn := connectionOf(ctx)
	admitted, err := g.admit(ctx, call.FullMethodName)
	if err == nil {
		err = g.count(ctx, conn, call.FullMethodName)
	}
	if err == nil {
		return admitted, nil
	}
	conn.Refused()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > farDeadline {
		return context.WithValue(ctx, refusalKey{}, err), nil
	}
	return ctx, err
}

// Calls that are open at one time.
const (
	// streamsUnproven bounds them on one connection without a proof.
	streamsUnproven = 4
	// streamsOfPeer bounds them over all connections of a node or an operator. An
	// agent has one heartbeat stream and few short calls.
	streamsOfPeer = 16
)

// count notes an open call until its context ends, or refuses it.
func (g *gate) count(ctx context.Context, conn *netlimit.Conn, method string) error {
	key, most, whose := any(conn), streamsUnproven, "this connection, whose peer has proven nothing,"
	if caller, err := CallerOf(ctx); err == nil {
		key, most, whose = caller.Identity, streamsOfPeer, caller.Identity.String()
		if caller.Identity.Role == pki.Coordinator {
			return nil // bounded by connection
		}
	} else if conn.Proven() {
		return nil // by a token; bounded by connection
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streams[key] >= most {
		return status.Errorf(codes.ResourceExhausted, "%s: %s has %d open calls, the limit is %d: wait until some have ended", method, whose, most, most)
	}
	g.streams[key]++
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.streams[key]--; g.streams[key] == 0 {
			delete(g.streams, key)
		}
	})
	return nil
}

// refusalKey is the context's key of a refusal that the tap has left to the
// handler.
type refusalKey struct{}

// leftByTap returns the refusal that the tap has left to the handler.
func leftByTap(ctx context.Context) error {
	err, _ := ctx.Value(refusalKey{}).(error)
	return err
}

// Register returns a registrar for the services of a server with Server's
// options. Its handlers refuse what the tap has left to them before they read a
// message.
func Register(s grpc.ServiceRegistrar) grpc.ServiceRegistrar { return registrar{s} }

type registrar struct{ grpc.ServiceRegistrar }

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(d *grpc.ServiceDesc, impl any) {
	guarded := *d
	guarded.Methods = make([]grpc.MethodDesc, 0, len(d.Methods))
	for _, m := range d.Methods {
		handle := m.Handler
		m.Handler = func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			if err := leftByTap(ctx); err != nil {
				return nil, err
			}
			return handle(srv, ctx, decode, intercept)
		}
		guarded.Methods = append(guarded.Methods, m)
	}
	r.ServiceRegistrar.RegisterService(&guarded, impl)
}

// connectionOf returns the connection of a call; nil where the listener has no
// limits.
func connectionOf(ctx context.Context) *netlimit.Conn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	switch i := p.AuthInfo.(type) {
	case info:
		return i.conn
	case plainInfo:
		return i.conn
	}
	return nil
}

// gateOf decides by the rules and the guards. A connection without a
// certificate counts as proven from the first call on that a guard accepts.
func (t *TLS) gateOf(rules Rules, guards []Guard) *gate {
	return newGate(func(ctx context.Context, method string) (context.Context, error) {
		if g := guardOf(guards, method); g != nil {
			return proven(g.admit(ctx, method))
		}
		rule, err := rules.admit(ctx, method, t.own)
		if err == nil && !rule.Open {
			err = t.holds(ctx, method) // the interceptor asks Admit, which may block
		}
		return ctx, err
	})
}

// gateOf decides by the token and the guards.
func (t Token) gateOf(guards []Guard) *gate {
	return newGate(func(ctx context.Context, method string) (context.Context, error) {
		if g := guardOf(guards, method); g != nil {
			return proven(g.admit(ctx, method))
		}
		return proven(ctx, t.check(ctx, method))
	})
}

// proven notes that a call's token has proven its connection.
func proven(ctx context.Context, err error) (context.Context, error) {
	if err != nil {
		return ctx, err
	}
	return ctx, connectionOf(ctx).Prove("", 0)
}
