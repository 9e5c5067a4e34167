package grpcapi

import (
	"context"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// known authenticates the caller of a call and counts the call: by the caller's
// tenant, and without a valid token by its address. A call that another coordinator
// has counted and passed on is not counted again.
func (a *API) known(ctx context.Context, md metadata.MD, counted bool) (service.Principal, *api.Status) {
	p, refused := service.Authenticate(ctx, a.Authenticator, proofsOf(ctx, md))
	switch {
	case refused != nil:
		if refused.Code == http.StatusUnauthorized && !counted {
			if late := countAnonymous(ctx, a.Gate); late != nil {
				refused = late
			}
		}
		return p, refused
	case a.Proven != nil:
		a.Proven(ctx)
	}
	if counted {
		return p, nil
	}
	standing, refused := a.Gate.Count(p)
	showStanding(ctx, standing)
	return p, refused
}

// hopIn is the hop in the metadata of a call, which anybody can send.
func hopIn(md metadata.MD) service.Hop {
	return service.Hop{
		By: only(md.Get(hopKey)), RequestID: only(md.Get(requestKey)), Authorization: only(md.Get("authorization")), Certificate: only(md.Get(certificateKey)), Address: only(md.Get(clientKey)),
	}
}

// hopOf is the hop of a call that another coordinator has passed on, and has proven to
// have passed on.
func hopOf(f *service.Forward, md metadata.MD) (hop service.Hop, proven bool) {
	hop = hopIn(md)
	return hop, hop.By != "" && f.PassedOn(hop, only(md.Get(hopProofKey)))
}

// proofsOf are the proofs of a call.
func proofsOf(ctx context.Context, md metadata.MD) service.Proofs {
	proofs := service.Proofs{Authorization: md.Get("authorization"), PassedOn: only(md.Get(certificateKey))}
	if p, known := peer.FromContext(ctx); known {
		if secure, is := p.AuthInfo.(credentials.TLSInfo); is {
			proofs.Chain = service.ChainOf(&secure.State)
		}
	}
	return proofs
}

// countAnonymous counts a call without a valid token.
func countAnonymous(ctx context.Context, g *gate.Gate) *api.Status {
	host, _, err := net.SplitHostPort(clientAddress(ctx))
	if err != nil {
		return nil // a connection without an address, as in a test
	}
	standing, refused := g.CountAnonymous(host)
	showStanding(ctx, standing)
	return refused
}

// showStanding sends the specification's headers as metadata, whose names are in
// lower case.
func showStanding(ctx context.Context, s gate.Standing) {
	if s.Limit == 0 {
		return
	}
	md := metadata.MD{}
	for name, value := range s.Headers {
		md[strings.ToLower(name)] = []string{value}
	}
	_ = grpc.SetHeader(ctx, md) // fails only outside of a call
}
