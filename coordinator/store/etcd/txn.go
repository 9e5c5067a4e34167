package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// txnPatience is how many times longer than another request a Txn may go
// unanswered: no other member can be asked, and a slow disk is no reason to
// doubt its outcome.
const txnPatience = 2

// Txn commits t in one round trip. It is sent at most once.
func (s *Store) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if s.ctx.Err() != nil {
		return record.TxnResult{}, store.ErrClosed
	}
	if err := t.Check(s.maxTxnOps); err != nil {
		return record.TxnResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return record.TxnResult{}, err // nothing was sent
	}
	era := s.history.present()
	if err := s.reach(ctx); err != nil {
		return record.TxnResult{}, err // nor here
	}
	began, err := s.history.before()
	if err == nil && began.era != era {
		err = era.err // acknowledged meanwhile, but not by the caller that built t
	}
	if err != nil {
		return record.TxnResult{}, s.txnFailed(t, err)
	}
	start := time.Now()
	var answer *pb.TxnResponse
	err = s.within(ctx, txnPatience*s.requestTimeout, func(ctx context.Context) (err error) {
		answer, err = s.kv.Txn(ctx, request(t), calls...)
		return err
	})
	s.metrics.txn.Observe(time.Since(start).Seconds())
	if err != nil {
		return record.TxnResult{}, s.txnFailed(t, err)
	}
	rev := resource.Revision(answer.Header.Revision)
	if err := s.history.check(began, rev); err != nil {
		// It was done, or refused, by a store that is not the one it was meant for.
		return record.TxnResult{}, s.txnFailed(t, fmt.Errorf("%w: %w", record.ErrUnknownOutcome, err))
	}
	if answer.Succeeded {
		s.history.saw(began.era, written(t, rev))
	}
	return record.TxnResult{Succeeded: answer.Succeeded, Revision: rev}, nil
}

// reach waits until a member is connected and the store's past is verified.
// While no member is, nothing is sent, and the outcome is not in doubt.
func (s *Store) reach(ctx context.Context) error {
	if s.connected() {
		return s.verify(ctx)
	}
	if _, err := s.read(ctx, "reach etcd", &pb.RangeRequest{Key: []byte(record.Root), Limit: 1}); err != nil {
		return err
	}
	return s.verify(ctx)
}

// written is the version of a key that t wrote at rev.
func written(t record.Txn, rev resource.Revision) version {
	for i := range t.Then {
		if o := &t.Then[i]; !o.Delete {
			return versionOf(o.Key, o.Value, rev)
		}
	}
	return version{rev: rev}
}

// txnFailed translates the error of a Txn that was sent, or not because the
// store went back, and counts it.
func (s *Store) txnFailed(t record.Txn, err error) error {
	switch {
	case errors.Is(err, record.ErrWentBack):
	default:
		err = txnError(t, s.maxTxnOps, err)
	}
	if errors.Is(err, record.ErrNoSpace) {
		s.look()
	}
	s.metrics.failed(err)
	return err
}

// request writes t in etcd's terms. It does not use clientv3.Txn, which builds
// and then clones every message: this is the hot path of every commit.
func request(t record.Txn) *pb.TxnRequest {
	r := &pb.TxnRequest{Compare: make([]*pb.Compare, len(t.If)), Success: make([]*pb.RequestOp, len(t.Then))}
	compares := make([]pb.Compare, len(t.If))
	for i := range t.If {
		from, c := &t.If[i], &compares[i]
		c.Key, c.Result = []byte(from.Key), pb.Compare_EQUAL
		if from.Target == record.CompareModRev {
			c.Target, c.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: int64(from.Rev)}
		} else {
			c.Target, c.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: int64(from.Rev)}
		}
		r.Compare[i] = c
	}
	if len(t.Then) == 0 {
		// Without an operation etcd answers compares from the state of one
		// member, which may lag. A read makes them linearizable.
		r.Success = []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(record.Root), CountOnly: true}}}}
		return r
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

// txnError distinguishes a definite refusal, which etcd makes before or instead
// of applying the transaction, from every other error.
func txnError(t record.Txn, limit int, err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return &record.TooManyOpsError{Ops: t.Ops(), Limit: limit}
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return &record.TooLargeError{Bytes: t.Size()}
	case errors.Is(err, rpctypes.ErrDuplicateKey):
		return record.ErrDuplicateKey
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return record.ErrLeaseGone
	case errors.Is(err, rpctypes.ErrNoSpace):
		return record.ErrNoSpace
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return record.ErrReadOnly
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
		return &record.TooLargeError{Bytes: t.Size()}
	}
	return fmt.Errorf("%w: %w", record.ErrUnknownOutcome, err)
}
