package rpcauth

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/musterd/muster/pki"
)

// Member is the means by which one party of a cluster proves that it belongs
// there, and judges other parties: a Token, over loopback alone, or a TLS
// identity.
type Member interface {
	// DialOptions are the credentials of a client that means to reach want.
	DialOptions(want Want) []grpc.DialOption
	// CheckAddress refuses an address that this kind of proof must not be used
	// on. field names where the address comes from, for the message.
	CheckAddress(field, address string) error
	// IsZero reports whether there is nothing to prove anything with.
	IsZero() bool

	serverOptions(rules Rules) []grpc.ServerOption
}

// Want is the identity that a client means to reach.
type Want struct {
	Role pki.Role
	// ID is the party's; "" takes any coordinator, and of a node the one that
	// the connection's authority names (grpc.WithAuthority).
	ID string
}

// AnyCoordinator wants whichever coordinator answers.
func AnyCoordinator() Want { return Want{Role: pki.Coordinator} }

// NamedNode wants the node that the connection's authority names.
func NamedNode() Want { return Want{Role: pki.Node} }

// Server returns the options of a server whose callers prove themselves to m
// and may make the calls that rules allow.
func Server(m Member, rules Rules) []grpc.ServerOption {
	return m.serverOptions(rules)
}

// DialOptions put the token on every call. They carry no TLS: dial only
// addresses that CheckAddress accepts.
func (t Token) DialOptions(Want) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(Credentials(t))}
}

// CheckAddress is CheckLoopback: a token never leaves this machine.
func (t Token) CheckAddress(field, address string) error { return CheckLoopback(field, address) }

// serverOptions let every caller with the token make every call: a token does
// not identify the caller.
func (t Token) serverOptions(Rules) []grpc.ServerOption {
	return ServerOptions(t)
}
