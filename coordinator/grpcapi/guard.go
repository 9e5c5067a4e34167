package grpcapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// request is one call of the API.
type request struct {
	a      *API
	method string
	id     string
	began  time.Time
}

// enter names a call and authenticates its caller: the context has both.
func (a *API) enter(ctx context.Context, method string) (r request, known context.Context, status *api.Status) {
	in := intakeOf(ctx)
	if in == nil { // it came past ServeHTTP
		md, _ := metadata.FromIncomingContext(ctx)
		in = &intake{arrival: a.arrive(ctx, md)}
		in.refused = in.status
	}
	r = request{a: a, method: method, id: in.id, began: time.Now()}
	_ = grpc.SetHeader(ctx, metadata.Pairs(requestKey, r.id)) // fails only outside of a call
	showStanding(ctx, in.standing)
	if in.refused != nil {
		service.NoteRefused(ctx, a.Audits, service.RefusedRequest(in.sender, "", "", "", method), in.refused)
		return r, nil, in.refused
	}
	ctx = service.WithCaller(ctx, in.sender)
	return r, context.WithValue(ctx, principalKey{}, in.sender.Principal), nil
}

// clientAddress is the address that a call comes from, "" where unknown.
func clientAddress(ctx context.Context) string {
	if p, known := peer.FromContext(ctx); known && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

// hold ends a stream, or a wait, when the caller's token was revoked or has expired, and
// when the caller's roles have changed: the client asks again by the new ones.
func (a *API) hold(ctx context.Context) (held context.Context, end func()) {
	md, _ := metadata.FromIncomingContext(ctx)
	before := caller(ctx)
	return service.Hold(ctx, a.Authenticator, func(ctx context.Context) (service.Principal, *api.Status) {
		p, status := service.Authenticate(ctx, a.Authenticator, proofsOf(ctx, md))
		if status == nil {
			status = service.SameRoles(before, p)
		}
		return p, status
	})
}

// left is the error that a call ends with: refusals have the id of the request,
// and a panic, nil for none, is an internal error.
func (r request) left(ctx context.Context, panicked any, err error) error {
	if panicked != nil {
		r.a.Logger.Error("panic_while_serving", "method", r.method, "request_id", r.id, "panic", panicked, "stack", string(debug.Stack()))
		err = api.Errorf(http.StatusInternalServerError, "%s failed inside the coordinator; its log says why", r.method)
	}
	if err != nil {
		err = r.a.refusal(ctx, r.method, r.id, err)
	}
	if r.a.Logger.Enabled(ctx, slog.LevelDebug) {
		r.a.Logger.Debug("request", "method", r.method, "request_id", r.id, "took", time.Since(r.began), "error", err)
	}
	return err
}

// guard surrounds each call with one answer.
func (a *API) guard(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	if !strings.HasPrefix(info.FullMethod, ours) {
		if err := refusedHere(ctx); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
	r, known, status := a.enter(ctx, info.FullMethod)
	defer func() {
		if err = r.left(ctx, recover(), err); err != nil {
			answer = nil
		}
	}()
	if status != nil {
		return nil, status
	}
	defer func() { a.noteRefused(known, err) }()
	defer func() { addNotices(ctx, a.Notices) }() // as they are after the call
	if m, is := req.(proto.Message); is {
		n := int64(proto.Size(m))
		if status := a.Gate.Charge(service.CallerOf(known), gate.OfJSON(int(n))); status != nil {
			return nil, status
		}
		if n > gate.SmallDocument {
			release, ok := a.Gate.Rooms.Decoded.Take(ctx, caller(known), n)
			if !ok {
				return nil, busy("large documents of others are being decoded; ask again")
			}
			defer release()
		}
	}
	turn := a.Gate.Turn(caller(known))
	defer turn.End()
	if status := turn.Begin(ctx); status != nil {
		return nil, status
	}
	if waits(req).AsDuration() > 0 { // for an object, and not for the coordinator
		release, status := a.Gate.Hold(caller(known), gate.Waits, 1)
		if status != nil {
			return nil, status
		}
		defer release()
		if status := intakeOf(ctx).park(a.Gate); status != nil {
			return nil, status
		}
		turn.End()
		held, end := a.hold(known)
		defer end()
		known = held
	}
	limited, end := a.limit(known, info.FullMethod, req)
	defer end()
	answer, err = next(gate.WithTurn(limited, turn), req)
	if ended := service.Refused(limited); ended != nil && err != nil {
		err = ended
	}
	if err == nil {
		err = a.sending(ctx, info.FullMethod, req, answer)
	}
	a.answerBy(ctx, time.Now().Add(answerWithin))
	return answer, err
}

// limit bounds a call's wait for the store, but for questions about the past.
func (a *API) limit(ctx context.Context, method string, req any) (limited context.Context, end func()) {
	if strings.HasPrefix(method, ours+"History/") {
		return ctx, func() {}
	}
	m, may := req.(interface{ GetWait() *durationpb.Duration })
	return service.Limit(ctx, a.Store, service.Bound{Changes: repeatOf(method, req) != service.Read, Waits: may && m.GetWait() != nil})
}

// sending holds the bytes of a large answer until it has been written. The answer to a
// change is never refused: the change has been made.
func (a *API) sending(ctx context.Context, method string, req, answer any) error {
	m, is := answer.(proto.Message)
	in := intakeOf(ctx)
	if !is || in == nil || repeatOf(method, req) != service.Read {
		return nil
	}
	n := int64(proto.Size(m))
	if n <= gate.SmallDocument {
		return nil
	}
	release, status := a.Gate.Hold(in.sender.Principal, gate.Answers, n)
	if status != nil {
		return status
	}
	in.keep(release)
	return nil
}

// guardStream surrounds each call with a stream: watches and sessions.
func (a *API) guardStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	if in := intakeOf(stream.Context()); in != nil && in.asked != nil {
		stream = pacedStream{stream, in.asked}
	}
	if !strings.HasPrefix(info.FullMethod, ours) {
		if err := refusedHere(stream.Context()); err != nil {
			return err
		}
		return next(srv, stream)
	}
	r, known, status := a.enter(stream.Context(), info.FullMethod)
	defer func() { err = r.left(stream.Context(), recover(), err) }()
	if status != nil {
		return status
	}
	release, status := a.Gate.Hold(caller(known), gate.Watches, 1)
	if status != nil {
		return status
	}
	defer release()
	turn := a.Gate.Turn(caller(known))
	defer turn.End()
	if status := turn.Begin(known); status != nil {
		return status
	}
	known = gate.WithTurn(known, turn) // which ends once the watch is open
	addNotices(known, a.Notices)
	held, end := a.hold(known)
	defer end()
	err = next(srv, knownStream{stream, held})
	a.noteRefused(known, err)
	if ended := service.Refused(held); ended != nil {
		return ended
	}
	return err
}

// noteRefused gives a call that was refused to the audit.
func (a *API) noteRefused(ctx context.Context, err error) {
	var status *api.Status
	if errors.As(err, &status) {
		service.NoteRefusedLate(ctx, a.Audits, status)
	}
}

// knownStream is a stream whose caller is known.
type knownStream struct {
	grpc.ServerStream
	known context.Context
}

// Context implements grpc.ServerStream.
func (s knownStream) Context() context.Context { return s.known }
