// Package rpcauth lets agents and coordinators prove to each other that they
// belong to one cluster: by certificates that name each of them (TLS), or,
// without TLS, by a shared token on every call (Token), and then nothing leaves
// the loopback interface. It decides which parties may call; the meaning of a call
// is the business of agent/rpc and the coordinator.
package rpcauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// metadataKey carries "Bearer <token>".
const metadataKey = "authorization"

const scheme = "Bearer "

// Token is a cluster's shared secret. The zero value lets nobody in.
type Token struct{ secret string }

// String hides the secret, so that no log shows it.
func (t Token) String() string { return "token(hidden)" }

// GoString hides the secret, so that no log shows it.
func (t Token) GoString() string { return t.String() }

// IsZero reports whether there is no secret.
func (t Token) IsZero() bool { return t.secret == "" }

// Secret returns the secret itself, for callers that have to store it.
func (t Token) Secret() string { return t.secret }

// minSecret is the least number of characters of a token.
const minSecret = 16

// NewToken checks a secret: at least 16 printable characters without spaces.
// The error never shows the secret.
func NewToken(secret string) (Token, error) {
	if len(secret) < minSecret {
		return Token{}, fmt.Errorf("token: %d characters, want at least %d", len(secret), minSecret)
	}
	for i := range len(secret) {
		if secret[i] <= ' ' || secret[i] > '~' {
			return Token{}, fmt.Errorf("token: character %d of %d is not printable ASCII", i+1, len(secret))
		}
	}
	return Token{secret}, nil
}

// Equal compares in constant time.
func (t Token) Equal(u Token) bool {
	a, b := sha256.Sum256([]byte(t.secret)), sha256.Sum256([]byte(u.secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && !t.IsZero()
}

// check refuses a call that does not carry the token.
func (t Token) check(ctx context.Context, method string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get(metadataKey)
	if len(values) != 1 {
		return status.Errorf(codes.Unauthenticated, "%s: %d %s headers, want one with the cluster's token", method, len(values), metadataKey)
	}
	secret, ok := strings.CutPrefix(values[0], scheme)
	if !ok {
		return status.Errorf(codes.Unauthenticated, "%s: %s header does not start with %q", method, metadataKey, scheme)
	}
	if !t.Equal(Token{secret}) {
		return status.Errorf(codes.Unauthenticated, "%s: the token is not this cluster's", method)
	}
	return nil
}

// ServerOptions check the token on every unary and streaming call, before any
// handler runs.
func ServerOptions(t Token) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(plainCredentials()), t.gate().option(),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := t.check(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := t.check(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return next(srv, stream)
		}),
	}
}

// Credentials puts the token on every call of a client. They travel without
// TLS, so dial only addresses that CheckLoopback accepts.
func Credentials(t Token) credentials.PerRPCCredentials { return perRPC{t} }

type perRPC struct{ token Token }

func (p perRPC) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{metadataKey: scheme + p.token.secret}, nil
}

func (p perRPC) RequireTransportSecurity() bool { return false }

// CheckLoopback refuses an address whose host is not a loopback IP address or
// "localhost": without TLS nothing is served elsewhere and no token is sent
// elsewhere. field names where the address comes from, for the message.
func CheckLoopback(field, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s: address %q: want HOST:PORT", field, address)
	}
	if host == "localhost" {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%s: address %q is not on the loopback interface; without TLS use 127.0.0.1 or [::1]", field, address)
	}
	return nil
}

// Reachable is where others reach a listener: the address it is bound to, at
// the advertised host if there is one. A listener on every address of its host
// needs one; field names where its address comes from.
func Reachable(field string, bound net.Addr, advertise string) (string, error) {
	address, err := netip.ParseAddrPort(bound.String())
	switch {
	case err != nil:
		return bound.String(), nil //nolint:nilerr // no TCP address: an in-memory listener
	case advertise != "":
		return net.JoinHostPort(advertise, strconv.Itoa(int(address.Port()))), nil
	case address.Addr().IsUnspecified():
		return "", fmt.Errorf("%s: %s is every address of this host: set advertise to the IP address that others reach it at", field, address)
	}
	return address.String(), nil
}
