// Package grpcapi is the public API over gRPC, as far as it is offered there:
// quota. It authenticates callers by REST's own Authenticator and translates; documents are judged by package api and everything else by the
// service.Quotas beneath, so that both ways in answer alike.
package grpcapi

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire"
)

// principalKey is the context's key of the caller.
type principalKey struct{}

// Guard lets in whom REST lets in: the bearers of its tokens.
func Guard(a service.Authenticator) rpcauth.Guard {
	return rpcauth.Guard{
		Service: musterv1.Quotas_ServiceDesc.ServiceName,
		Check: func(ctx context.Context, secret string) (context.Context, error) {
			p, err := a.Authenticate(ctx, secret)
			var refused *api.Status
			switch {
			case errors.As(err, &refused):
				return nil, wire.ToRefusal(refused)
			case err != nil:
				return nil, wire.ToRefusal(api.Errorf(http.StatusUnauthorized, "the token is not valid here"))
			}
			md, _ := metadata.FromIncomingContext(ctx)
			ctx = service.WithCaller(ctx, service.Caller{Principal: p, RequestID: service.RequestID(only(md.Get(requestKey))), Address: clientAddress(ctx)})
			return context.WithValue(ctx, principalKey{}, p), nil
		},
	}
}

// may returns the refusal of a caller that may not use a verb on a kind; without
// a Guard nobody may.
func (s *Server) may(ctx context.Context, verb service.Verb, kind service.Kind, namespace string) *api.Status {
	p, known := ctx.Value(principalKey{}).(service.Principal)
	if !known {
		return api.Errorf(http.StatusUnauthorized, "nobody has checked who calls")
	}
	if status := s.Access.Authorize(p, verb, kind, namespace, ""); status != nil {
		s.refused(ctx, verb, kind, namespace, status)
		return status
	}
	service.Begin(ctx, verb, kind, namespace, "")
	return nil
}
