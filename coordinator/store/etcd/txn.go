package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Txn commits t in one round trip.
func (s *Store) Txn(ctx context.Context, t store.Txn) (store.TxnResult, error) {
	if s.ctx.Err() != nil {
		return store.TxnResult{}, store.ErrClosed
	}
	if err := t.Check(s.maxTxnOps); err != nil {
		return store.TxnResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.TxnResult{}, err // nothing was sent
	}
	// The server's limit on a request decides, and only it. A call waits for a
	// connection rather than fail while one is being made.
	answer, err := s.kv.Txn(ctx, request(t), grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(math.MaxInt32))
	if err != nil {
		return store.TxnResult{}, txnError(t, s.maxTxnOps, clientv3.ContextError(ctx, err))
	}
	return store.TxnResult{Succeeded: answer.Succeeded, Revision: resource.Revision(answer.Header.Revision)}, nil
}

// request writes t in etcd's terms. It does not use clientv3.Txn, which builds
// and then clones every message: this is the hot path of every commit.
func request(t store.Txn) *pb.TxnRequest {
	r := &pb.TxnRequest{Compare: make([]*pb.Compare, len(t.If)), Success: make([]*pb.RequestOp, len(t.Then))}
	compares := make([]pb.Compare, len(t.If))
	for i := range t.If {
		from, c := &t.If[i], &compares[i]
		c.Key, c.Result = []byte(from.Key), pb.Compare_EQUAL
		if from.Target == store.CompareModRev {
			c.Target, c.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: int64(from.Rev)}
		} else {
			c.Target, c.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: int64(from.Rev)}
		}
		r.Compare[i] = c
	}
	ops := make([]pb.RequestOp, len(t.Then))
	for i := range t.Then {
		from, o := &t.Then[i], &ops[i]
		if from.Delete {
			o.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(from.Key)}}
		} else {
			o.Request = &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(from.Key), Value: from.Value, Lease: int64(from.Lease)}}
		}
		r.Success[i] = o
	}
	return r
}

// txnError tells a definite refusal, which etcd makes before or instead of
// applying the transaction, from everything else.
func txnError(t store.Txn, limit int, err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return &store.TooManyOpsError{Ops: t.Ops(), Limit: limit}
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return &store.TooLargeError{Bytes: t.Size()}
	case errors.Is(err, rpctypes.ErrDuplicateKey):
		return store.ErrDuplicateKey
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return store.ErrLeaseGone
	case errors.Is(err, rpctypes.ErrNoSpace):
		return store.ErrNoSpace
	}
	switch code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return fmt.Errorf("etcd refused the transaction: %w", err)
	case codes.ResourceExhausted:
		var refusal rpctypes.EtcdError
		if errors.As(err, &refusal) {
			return fmt.Errorf("etcd refused the transaction: %w", err)
		}
		// gRPC's own limit on a message. The client's limits are off, so it
		// was the server that did not read the request.
		return &store.TooLargeError{Bytes: t.Size()}
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}
