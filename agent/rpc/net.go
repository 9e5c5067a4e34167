package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire/limits"
)

// Limits of one connection to a coordinator. A server's are rpcauth.Limits;
// package limits has those of messages.
const (
	keepaliveTime    = 15 * time.Second
	keepaliveTimeout = 10 * time.Second
	// windowSize is the flow-control window: small, since a process may hold
	// many connections and no message of the protocol is large.
	windowSize = 64 << 10
)

// ListenAs opens a TCP listener on an address that suits the proof of member: a loopback
// address, or any address with TLS. field is the config field of the address; every
// error names both.
func ListenAs(member rpcauth.Member, field, address string) (net.Listener, error) {
	if err := member.CheckAddress(field, address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: address %s is in use by another process; stop it or set %s to another port", field, address, field)
	case err != nil:
		return nil, fmt.Errorf("%s: listen on %s: %w", field, address, err)
	}
	return l, nil
}

// Dialer opens the connection beneath a client; nil dials TCP.
type Dialer func(ctx context.Context, address string) (net.Conn, error)

// firstRedial and lastRedial bound the wait before a coordinator that was out of
// reach is dialled again. gRPC's own two minutes would leave promises
// unresolved long after an outage.
const (
	firstRedial = 200 * time.Millisecond
	lastRedial  = 5 * time.Second
)

// Dial returns a client connection to a coordinator; member proves itself to
// it. It does not block: the connection is made when the first call needs it.
// Without a Dialer of its own it refuses addresses that do not suit how member
// proves itself.
func Dial(address string, member rpcauth.Member, dialer Dialer) (*grpc.ClientConn, error) {
	options := append(append(member.DialOptions(rpcauth.AnyCoordinator()), limits.DialOptions()...),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limits.MaxAnswer), grpc.MaxCallSendMsgSize(limits.MaxSession)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: firstRedial, Multiplier: 1.6, Jitter: 0.2, MaxDelay: lastRedial}, MinConnectTimeout: callTimeout,
		}),
		grpc.WithInitialWindowSize(windowSize), grpc.WithInitialConnWindowSize(windowSize),
	)
	if dialer == nil {
		if err := member.CheckAddress("dial", address); err != nil {
			return nil, err
		}
	} else {
		options = append(options, grpc.WithContextDialer(dialer))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return conn, nil
}

// serverOptions are the check of callers and the limits of connections. The
// largest order of a leader, a reservation of 1,024 members on one host, takes
// less than 1 MiB.
func serverOptions(member rpcauth.Member) []grpc.ServerOption {
	options := append(rpcauth.Server(member, rpcauth.AgentRules()), limits.ServerOptions()...)
	return append(options, rpcauth.Limits()...)
}
