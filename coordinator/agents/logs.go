package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// Logs read the output of work from agents. The readers of one agent share a
// connection, which is not that of the leader's session: readers never take the place
// of a session. Methods may be called by any goroutine.
type Logs struct {
	Cluster string
	// Dial holds credentials and, in tests, a dialer.
	Dial []grpc.DialOption

	mu    sync.Mutex
	conns map[target]*logConn
}

// target is an agent at an address.
type target struct {
	node resource.NodeID
	addr string
}

// logConn is a connection with its readers; it closes with the last one.
type logConn struct {
	*grpc.ClientConn
	readers int
}

// MostLogReaders bounds the readers of one agent: a connection has 64 streams.
const MostLogReaders = 48

// ErrManyLogReaders is wrapped where an agent has as many readers as it may have.
var ErrManyLogReaders = errors.New("too many readers of output")

// Read gives the output that a query names, in order, until the agent ends it, ctx ends,
// or give fails. The error wraps grant.ErrNoLog where the agent has no such output.
func (l *Logs) Read(ctx context.Context, node resource.NodeID, addr string, q grant.LogQuery, give func(at int64, data []byte) error) error {
	at := target{node, addr}
	conn, err := l.take(at)
	if err != nil {
		return err
	}
	defer l.release(at)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of the stream, where give has failed
	stream, err := musterv1.NewAgentClient(conn).ReadLog(ctx, &musterv1.ReadLogRequest{
		Cluster: l.Cluster, Tx: string(q.Tx), Member: int32(q.Member), Restart: int32(q.Restart), Offset: q.From, Follow: q.Follow,
	})
	for err == nil {
		var piece *musterv1.LogChunk
		if piece, err = stream.Recv(); err == nil {
			if err := give(piece.GetOffset(), piece.GetData()); err != nil {
				return err
			}
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case status.Code(err) == codes.NotFound:
		return fmt.Errorf("node %s: %w", node, grant.ErrNoLog)
	}
	return fmt.Errorf("node %s at %s: %w", node, addr, err)
}

// take returns the connection to an agent, for one more reader.
func (l *Logs) take(at target) (*logConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[at]
	if c == nil {
		conn, err := grpc.NewClient("passthrough:///"+at.addr, append([]grpc.DialOption{
			grpc.WithAuthority(string(at.node)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepalivePeriod, Timeout: keepaliveTimeout}),
		}, append(limits.DialOptions(), l.Dial...)...)...)
		if err != nil {
			return nil, fmt.Errorf("agent %s at %s: %w", at.node, at.addr, err)
		}
		c = &logConn{ClientConn: conn}
		if l.conns == nil {
			l.conns = map[target]*logConn{}
		}
		l.conns[at] = c
	}
	if c.readers == MostLogReaders {
		return nil, fmt.Errorf("node %s has %d readers of output by this coordinator: %w", at.node, c.readers, ErrManyLogReaders)
	}
	c.readers++
	return c, nil
}

// release ends a reader.
func (l *Logs) release(at target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[at]
	if c.readers--; c.readers == 0 {
		delete(l.conns, at)
		_ = c.Close()
	}
}
