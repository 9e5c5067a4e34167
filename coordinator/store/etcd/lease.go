package etcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// Grant makes a lease. One that was granted without an answer ends unused.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if ttl <= 0 {
		return store.Lease{}, fmt.Errorf("grant a lease of %v: want a positive time", ttl)
	}
	var l store.Lease
	err := s.lease(ctx, "grant a lease", func(ctx context.Context) error {
		answer, err := s.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64((ttl + time.Second - 1) / time.Second)}, calls...)
		if err == nil {
			l = store.Lease{ID: record.LeaseID(answer.ID), TTL: time.Duration(answer.TTL) * time.Second}
		}
		return err
	})
	return l, err
}

// KeepAlive starts the lease's time anew, once.
func (s *Store) KeepAlive(ctx context.Context, id record.LeaseID) error {
	return s.lease(ctx, fmt.Sprintf("keep lease %016x alive", uint64(id)), func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the stream
		stream, err := s.leases.LeaseKeepAlive(ctx, calls...)
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err == nil && answer.TTL <= 0 {
			return rpctypes.ErrLeaseNotFound
		}
		return err
	})
}

// Revoke ends the lease and deletes its keys. If an attempt went unanswered and
// the next one finds no lease, the lease has ended all the same.
func (s *Store) Revoke(ctx context.Context, id record.LeaseID) error {
	return s.lease(ctx, fmt.Sprintf("revoke lease %016x", uint64(id)), func(ctx context.Context) error {
		_, err := s.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: int64(id)}, calls...)
		return err
	})
}

// lease makes a call about a lease: all of them may be repeated. Their answers
// show nothing of the store's past, so it is verified first.
func (s *Store) lease(ctx context.Context, what string, call func(context.Context) error) error {
	if err := s.verify(ctx); err != nil {
		return err
	}
	if _, err := s.history.before(); err != nil {
		return s.callError(what, err)
	}
	return s.repeat(ctx, what, call)
}
