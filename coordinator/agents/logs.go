package agents

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Logs read the output of work from agents. The readers of one agent share a
// connection, which is not that of the leader's session: readers never take the place
// of a session. Methods may be called by any goroutine.
type Logs struct {
	Cluster string
	// Dial holds credentials and, in tests, a dialer.
	Dial []grpc.DialOption

	conns conns
}

// MostLogReaders bounds the readers of one agent: a connection has 64 streams.
const MostLogReaders = 48

// ErrManyLogReaders is wrapped where an agent has as many readers as it may have.
var ErrManyLogReaders = errors.New("too many readers of output")

// Read gives the output that a query names, in order, until the agent ends it, ctx ends,
// or give fails. The error wraps grant.ErrNoLog where the agent has no such output.
func (l *Logs) Read(ctx context.Context, node resource.NodeID, addr string, q grant.LogQuery, give func(at int64, data []byte) error) error {
	at := target{node, addr}
	conn, err := l.conns.take(at, l.Dial, MostLogReaders)
	if errors.Is(err, errBusy) {
		return fmt.Errorf("%w: %w", ErrManyLogReaders, err)
	} else if err != nil {
		return err
	}
	defer l.conns.release(at)
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
