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
func (a *API) known(ctx context.Context, md metadata.MD, counted bool) (p service.Principal, standing gate.Standing, refused *api.Status) {
	p, refused = service.Authenticate(ctx, a.Authenticator, proofsOf(ctx, md))
	if refused == nil && a.Proven != nil {
		a.Proven(ctx)
	}
	switch {
	case counted:
		return p, standing, refused
	case refused == nil:
		standing, refused = a.Gate.Count(p)
		return p, standing, refused
	case refused.Code != http.StatusUnauthorized:
		return p, standing, refused
	}
	host, _, err := net.SplitHostPort(clientAddress(ctx))
	if err != nil {
		return p, standing, refused // a connection without an address, as in a test
	}
	standing, late := a.Gate.CountAnonymous(host)
	if late != nil {
		refused = late
	}
	return p, standing, refused
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
