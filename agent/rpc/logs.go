package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Logs has the output of the work of a host.
type Logs interface {
	// ReadLog gives the output of a start in order; see run.Runner. An error that wraps
	// grant.ErrNoLog says that there is none.
	ReadLog(ctx context.Context, q grant.LogQuery, give func(at int64, data []byte) error) error
}

// mostLogReaders bounds the readers of output at a time. Each coordinator has a
// connection for all of its readers, of rpcauth.Limits streams.
const mostLogReaders = 256

// ReadLog implements musterv1.AgentServer.
func (s *agentServer) ReadLog(r *musterv1.ReadLogRequest, out musterv1.Agent_ReadLogServer) error {
	if r.GetCluster() != s.cluster {
		return statusOf(fmt.Errorf("read log: the request is for cluster %q, this agent is of %q: %w", r.GetCluster(), s.cluster, ErrWrongCluster))
	}
	if err := needTx("read_log", r.GetTx()); err != nil {
		return statusOf(fmt.Errorf("%w: %w", err, ErrBadMessage))
	}
	select {
	case s.readers <- struct{}{}:
		defer func() { <-s.readers }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d readers of output are served here; ask again", mostLogReaders)
	}
	q := grant.LogQuery{Tx: resource.TxID(r.GetTx()), Member: int(r.GetMember()), Restart: int(r.GetRestart()), From: r.GetOffset(), Follow: r.GetFollow()}
	return statusOf(s.work.ReadLog(out.Context(), q, func(at int64, data []byte) error {
		return out.Send(&musterv1.LogChunk{Offset: at, Data: data})
	}))
}
