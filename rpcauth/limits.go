package rpcauth

import (
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/musterd/muster/netlimit"
	"github.com/musterd/muster/pki"
)

// MaxMessage is the largest message that a server of the cluster's protocols
// takes, in bytes. The largest honest one is a Hello (wire/limits).
const MaxMessage = 2 << 20

// Limits of a gRPC connection.
const (
	connectWithin  = 5 * time.Second  // for the handshakes of TLS and HTTP/2
	idleAtMost     = 10 * time.Minute // without a call
	maxStreams     = 64
	maxHeaderList  = 32 << 10
	window         = 64 << 10 // of flow control, of a stream and of a connection; gRPC takes no less
	bufferSize     = 8 << 10
	pingAfter      = 15 * time.Second
	pingTimeout    = 10 * time.Second
	pingsAtLeast   = 5 * time.Second // apart; agents ping every 15 s
	unprovenLife   = 20 * time.Second
	unprovenBytes  = 96 << 10 // one Enroll of at most 64 KiB, with its handshake and headers
	refusalsAtMost = 16
)

// Connections of one peer to one listener.
const (
	connectionsOfNode = 8
	connectionsOfPeer = 64 // of a coordinator or an operator
)

// Limits bound the memory of one connection of a gRPC server. A connection may
// read ahead at most a window and a message of each of its streams.
func Limits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ConnectionTimeout(connectWithin),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxHeaderListSize(maxHeaderList),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.ReadBufferSize(bufferSize), grpc.WriteBufferSize(bufferSize), grpc.SharedWriteBuffer(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleAtMost, Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAtLeast, PermitWithoutStream: true}),
	}
}

// CoordinatorConnections limits the connections of a coordinator's listener.
// Agents are unproven for the time of a handshake only: the limit per address
// is one of handshakes at a time, so that many agents may share an address.
func CoordinatorConnections() netlimit.Limits { return limitsOf(16<<10, 512, 128) }

// EnrollmentConnections limits the connections of a coordinator's listener for
// enrolment, whose peers stay unproven and go after a call.
func EnrollmentConnections() netlimit.Limits { return limitsOf(1<<10, 512, 128) }

// AgentConnections limits the connections of an agent's listener, which serves
// coordinators and few others.
func AgentConnections() netlimit.Limits { return limitsOf(512, 128, 64) }

func limitsOf(total, unproven, perAddress int) netlimit.Limits {
	total = netlimit.Budget(total)
	return netlimit.Limits{
		Total: total, Unproven: min(unproven, total/2), PerAddress: min(perAddress, total/4),
		ProveWithin: unprovenLife, UnprovenBytes: unprovenBytes, Refusals: refusalsAtMost,
	}
}

// limited informs a handshake's connection that its peer is proven.
type limited struct{ transport }

// ServerHandshake implements credentials.TransportCredentials.
func (l limited) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, auth, err := l.transport.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	i, ok := auth.(info)
	if !ok {
		return secure, auth, nil
	}
	i.conn = netlimit.Of(raw)
	if caller := i.caller.Identity; i.err == nil && caller.Cluster == l.tls.own.Cluster {
		most := connectionsOfPeer
		if caller.Role == pki.Node {
			most = connectionsOfNode
		}
		if err := i.conn.Prove(caller.String(), most); err != nil {
			i.conn.CloseFor(netlimit.OverPeer)
			_ = i.below.Close() // not secure.Close: it may wait for the peer
			return nil, nil, err
		}
	}
	return secure, i, nil
}

// Clone implements credentials.TransportCredentials.
func (l limited) Clone() credentials.TransportCredentials { return l }

// plain is a server's transport without TLS: it remembers the connection, which
// a token proves later.
type plain struct {
	credentials.TransportCredentials
}

// plainInfo is the connection of a plain handshake.
type plainInfo struct{ conn *netlimit.Conn }

// AuthType implements credentials.AuthInfo.
func (plainInfo) AuthType() string { return "insecure" }

// plainCredentials are the credentials of a server without TLS.
func plainCredentials() credentials.TransportCredentials { return plain{insecure.NewCredentials()} }

// ServerHandshake implements credentials.TransportCredentials.
func (plain) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return raw, plainInfo{netlimit.Of(raw)}, nil
}

// Clone implements credentials.TransportCredentials.
func (p plain) Clone() credentials.TransportCredentials { return p }
