// Package etcd is the store over etcd: an external cluster (Connect) or a
// single member inside this process (Embed). Both run the same code; only the
// way to the server differs.
//
// It decides which of etcd's errors leave a transaction's outcome unknown and
// finds the server's limits. It never repeats a transaction: clientv3 resends a
// write only when it is certain that it was not sent.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// pageSize is how many keys one request of a Range reads.
const pageSize = 1000

// Store is a store.Store over an etcd client.
type Store struct {
	client    *clientv3.Client
	kv        pb.KVClient // of the same connection, for transactions
	maxTxnOps int
	stop      func() error // stops the embedded server; nil for an external one

	// ctx ends at Close; watches are goroutines counted in wg.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newStore(client *clientv3.Client, kv pb.KVClient, maxTxnOps int, stop func() error) *Store {
	s := &Store{client: client, kv: kv, maxTxnOps: maxTxnOps, stop: stop}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// MaxTxnOps is the server's --max-txn-ops, as far as it was looked for.
func (s *Store) MaxTxnOps() int { return s.maxTxnOps }

// Close ends all watches, then the client, then the embedded server.
func (s *Store) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	s.cancel()
	s.wg.Wait()
	err := s.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil // how clientv3 reports that it was open
	}
	if s.stop != nil {
		err = errors.Join(err, s.stop())
	}
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Get reads one key.
func (s *Store) Get(ctx context.Context, key string) (store.KV, bool, resource.Revision, error) {
	if key == "" {
		return store.KV{}, false, 0, errors.New("get: key is empty")
	}
	answer, err := s.client.Get(ctx, key)
	if err != nil {
		return store.KV{}, false, 0, s.callError("get "+key, err)
	}
	rev := resource.Revision(answer.Header.Revision)
	if len(answer.Kvs) == 0 {
		return store.KV{}, false, rev, nil
	}
	return convert(answer.Kvs[0]), true, rev, nil
}

// Range reads all keys that begin with prefix, in pages at one revision.
func (s *Store) Range(ctx context.Context, prefix string, o store.RangeOptions) ([]store.KV, resource.Revision, error) {
	if prefix == "" {
		return nil, 0, errors.New("range: prefix is empty")
	}
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	from, at, left := prefix, int64(o.AtRevision), o.Limit
	if o.StartAfter != "" {
		from = max(prefix, o.StartAfter+"\x00")
	}
	if o.StartAfter != "" && from >= clientv3.GetPrefixRangeEnd(prefix) {
		// An empty range, which etcd would refuse; the revision still counts.
		answer, err := s.client.Get(ctx, prefix, clientv3.WithRev(at), clientv3.WithCountOnly())
		if err != nil {
			return nil, 0, s.rangeError(ctx, prefix, at, err)
		}
		return nil, readRevision(at, answer), nil
	}
	var kvs []store.KV
	for {
		page := pageSize
		if o.Limit > 0 {
			page = min(page, left)
		}
		answer, err := s.client.Get(ctx, from, end, clientv3.WithRev(at), clientv3.WithLimit(int64(page)))
		if err != nil {
			return nil, 0, s.rangeError(ctx, prefix, at, err)
		}
		at = int64(readRevision(at, answer))
		if kvs == nil {
			n := len(answer.Kvs)
			if answer.More && o.Limit == 0 {
				n = int(answer.Count)
			}
			kvs = make([]store.KV, 0, n)
		}
		for _, kv := range answer.Kvs {
			kvs = append(kvs, convert(kv))
		}
		left -= len(answer.Kvs)
		if !answer.More || o.Limit > 0 && left <= 0 {
			return kvs, resource.Revision(at), nil
		}
		from = kvs[len(kvs)-1].Key + "\x00"
	}
}

func readRevision(asked int64, answer *clientv3.GetResponse) resource.Revision {
	if asked != 0 {
		return resource.Revision(asked)
	}
	return resource.Revision(answer.Header.Revision)
}

func (s *Store) rangeError(ctx context.Context, prefix string, at int64, err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		floor, floorErr := s.floor(ctx, at)
		if floorErr != nil {
			return floorErr
		}
		return &store.CompactedError{Asked: resource.Revision(at), Floor: floor}
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("range %s at revision %d: %w", prefix, at, store.ErrFutureRevision)
	}
	return s.callError("range "+prefix, err)
}

// floor learns the oldest revision kept from a watch that asks for less: the
// answer to a read does not tell it.
func (s *Store) floor(ctx context.Context, below int64) (resource.Revision, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for answer := range s.client.Watch(ctx, store.Root, clientv3.WithRev(max(1, below))) {
		if answer.CompactRevision != 0 {
			return resource.Revision(answer.CompactRevision), nil
		}
	}
	return 0, s.callError("find the oldest revision", ctx.Err())
}

// Compact forgets what is older than rev.
func (s *Store) Compact(ctx context.Context, rev resource.Revision) error {
	_, err := s.client.Compact(ctx, int64(rev))
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		floor, floorErr := s.floor(ctx, 1)
		if floorErr != nil {
			return floorErr
		}
		return &store.CompactedError{Asked: rev, Floor: floor}
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("compact to revision %d: %w", rev, store.ErrFutureRevision)
	}
	return s.callError(fmt.Sprintf("compact to revision %d", rev), err)
}

// Grant makes a lease.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if ttl <= 0 {
		return store.Lease{}, fmt.Errorf("grant a lease of %v: want a positive time", ttl)
	}
	answer, err := s.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return store.Lease{}, s.callError("grant a lease", err)
	}
	return store.Lease{ID: store.LeaseID(answer.ID), TTL: time.Duration(answer.TTL) * time.Second}, nil
}

// KeepAlive starts the lease's time anew, once.
func (s *Store) KeepAlive(ctx context.Context, id store.LeaseID) error {
	_, err := s.client.KeepAliveOnce(ctx, clientv3.LeaseID(id))
	return s.callError(fmt.Sprintf("keep lease %016x alive", uint64(id)), err)
}

// Revoke ends the lease and deletes its keys.
func (s *Store) Revoke(ctx context.Context, id store.LeaseID) error {
	_, err := s.client.Revoke(ctx, clientv3.LeaseID(id))
	return s.callError(fmt.Sprintf("revoke lease %016x", uint64(id)), err)
}

// callError names the call and translates what every call can meet.
func (s *Store) callError(call string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return store.ErrClosed
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return fmt.Errorf("%s: %w", call, store.ErrLeaseGone)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%s: %w", call, store.ErrNoSpace)
	}
	return fmt.Errorf("%s: %w", call, err)
}
