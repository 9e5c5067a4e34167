package rpcauth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/pki"
)

// Judge knows which certificates no longer count although they are good: the
// key was replaced, the party is banned, the operator was revoked. A server
// asks it about the caller of each call, a client about each server that it
// dials.
type Judge interface {
	// Admit refuses a peer before a call or after a dial. It may read the store
	// once and ends with ctx. A gRPC status is answered as it is, any other error
	// as PermissionDenied.
	Admit(ctx context.Context, peer Caller) error
	// Holds refuses a peer by lists in memory. It does not block: it is asked
	// for each message of a stream, and for all open connections after a
	// change.
	Holds(peer Caller) error
}

// everybody is the Judge of a party that has none: certificates alone decide.
type everybody struct{}

func (everybody) Admit(context.Context, Caller) error { return nil }
func (everybody) Holds(Caller) error                  { return nil }

// SetJudge sets the Judge, and closed, which is called after an open connection
// was ended because of its peer, and may be nil. It is called before the first
// connection.
func (t *TLS) SetJudge(j Judge, closed func(peer Caller, reason error)) {
	t.judge, t.closed = j, closed
}

// Recheck ends the open connections to and from these peers, or all without any,
// that the Judge no longer accepts. It does not wait for their calls.
func (t *TLS) Recheck(peers ...pki.Identity) {
	concerns := func(peer Caller) bool { return len(peers) == 0 || slices.Contains(peers, peer.Identity) }
	t.open.sweep(concerns, t.judge.Holds, t.closed)
}

// admitted judges the caller of a call that the rules allow.
func (t *TLS) admitted(ctx context.Context, rule Rule, method string) error {
	if rule.Open {
		return nil
	}
	caller, err := CallerOf(ctx)
	if err == nil {
		err = t.current(caller)
	}
	if err == nil {
		err = t.judge.Admit(ctx, caller)
	}
	return refusal(err, method)
}

// holds judges the sender of one more message of a stream.
func (t *TLS) holds(ctx context.Context, method string) error {
	caller, err := CallerOf(ctx)
	if err == nil {
		err = t.current(caller)
	}
	if err == nil {
		err = t.judge.Holds(caller)
	}
	return refusal(err, method)
}

// current refuses a certificate that has expired since its connection was made.
func (t *TLS) current(peer Caller) error {
	if end := peer.Certificate.NotAfter; time.Now().After(end) {
		return status.Errorf(codes.Unauthenticated, "the certificate of %s expired at %s", peer.Identity, end.UTC().Format(time.RFC3339))
	}
	return nil
}

// trusted refuses a chain that leads to no authority any more.
func (t *TLS) trusted(peer Caller) error {
	_, err := pki.Verify(peer.chain, t.state.Load().Roots, time.Now(), peer.use)
	return err
}

func refusal(err error, method string) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return status.Errorf(s.Code(), "%s: %s", method, s.Message())
	}
	return status.Error(codes.PermissionDenied, fmt.Sprintf("%s: %v", method, err))
}
