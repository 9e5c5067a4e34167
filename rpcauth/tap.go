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
	admit func(ctx context.Context, method string) (admission, error)

	mu sync.Mutex
	// streams counts open calls by admission.key; no value is 0.
	streams map[any]int
}

// admission is a call that may be made.
type admission struct {
	ctx context.Context // of the handler
	// key is whose open calls are bounded together by most; nil bounds them by
	// connection alone.
	key  any
	most int
}

// Calls that are open at one time.
const (
	// streamsUnproven bounds them on one connection without a proof.
	streamsUnproven = 4
	// streamsOfPeer bounds them over all connections of a node or an operator. An
	// agent has one heartbeat stream and few short calls.
	streamsOfPeer = 16
)

func newGate(admit func(context.Context, string) (admission, error)) *gate {
	return &gate{admit: admit, streams: map[any]int{}}
}

func (g *gate) option() grpc.ServerOption { return grpc.InTapHandle(g.tap) }

// tap is a tap.ServerInHandle: it runs in the connection's reading goroutine
// and must not block.
func (g *gate) tap(ctx context.Context, call *tap.Info) (context.Context, error) {
	admitted, err := g.admit(ctx, call.FullMethodName)
	if err == nil {
		err = g.count(ctx, admitted, call.FullMethodName)
	}
	if err == nil {
		return admitted.ctx, nil
	}
	connectionOf(ctx).Refused()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > farDeadline {
		return context.WithValue(ctx, refusalKey{}, err), nil
	}
	return ctx, err
}

// count notes an open call until its context ends, or refuses it.
func (g *gate) count(ctx context.Context, a admission, method string) error {
	if a.key == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streams[a.key] >= a.most {
		return status.Errorf(codes.ResourceExhausted, "%s: this caller has %d open calls, the limit is %d: wait until some have ended", method, a.most, a.most)
	}
	g.streams[a.key]++
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.streams[a.key]--; g.streams[a.key] == 0 {
			delete(g.streams, a.key)
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
// options. Its handlers refuse the calls that the tap has left to them before
// they read a message.
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

// gate decides by the rules.
func (t *TLS) gate(rules Rules) *gate {
	return newGate(func(ctx context.Context, method string) (admission, error) {
		rule, err := rules.admit(ctx, method, t.own)
		if err == nil && !rule.Open {
			err = t.holds(ctx, method) // the interceptor asks Admit, which may block
		}
		if err != nil {
			return admission{}, err
		}
		a := admission{ctx: ctx}
		switch caller, err := CallerOf(ctx); {
		case err == nil && caller.Identity.Role != pki.Coordinator:
			a.key, a.most = caller.Identity, streamsOfPeer
		case err != nil: // an open method
			if conn := connectionOf(ctx); conn != nil {
				a.key, a.most = conn, streamsUnproven
			}
		}
		return a, nil
	})
}

// gate decides by the token, whose bearers are the parts of the cluster on this host.
func (t Token) gate() *gate {
	return newGate(func(ctx context.Context, method string) (admission, error) {
		if err := t.check(ctx, method); err != nil {
			return admission{}, err
		}
		return admission{ctx: ctx}, connectionOf(ctx).Prove("", 0)
	})
}
