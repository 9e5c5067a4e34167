// Package etcd is the store over etcd: an external cluster (Connect) or a
// single member inside this process (Embed). Both run the same code; only the
// way to the server differs.
//
// It decides which of etcd's errors leave a transaction's outcome unknown,
// which calls are tried again and at which member, finds the server's limits,
// and notices that a cluster was restored from a backup. It never repeats a
// transaction.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// pageSize is how many keys one request of a Range reads.
const pageSize = 1000

// Store is a store.Store over etcd's API.
type Store struct {
	kv      pb.KVClient
	leases  pb.LeaseClient
	watches pb.WatchClient
	conn    *grpc.ClientConn // nil for an embedded server
	near    near             // its dial is nil for an embedded server
	stop    func() error     // closes the client or stops the embedded server

	maxTxnOps      int
	requestTimeout time.Duration // 0: there is no other member to ask
	log            *slog.Logger
	metrics        *metrics
	history        *history
	monitor        *monitor

	// ctx ends at Close; watches and the monitor are goroutines counted in wg.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// start is called once all fields are set that do not concern its goroutines.
func (s *Store) start() {
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(func() { s.monitor.run(s.ctx, s) })
}

// MaxTxnOps is the server's --max-txn-ops, as far as it was looked for.
func (s *Store) MaxTxnOps() int { return s.maxTxnOps }

// connected reports whether a request would be sent at once.
func (s *Store) connected() bool { return s.conn == nil || s.conn.GetState() == connectivity.Ready }

// look asks the monitor to look at the members now.
func (s *Store) look() { s.monitor.look() }

// Close ends all watches, then the client or the embedded server.
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
	if err := errors.Join(s.near.close(), s.stop()); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Get reads one key.
func (s *Store) Get(ctx context.Context, key string) (record.KV, bool, resource.Revision, error) {
	answer, err := s.ask(ctx, "get "+key, &pb.RangeRequest{Key: []byte(key)})
	if err != nil {
		return record.KV{}, false, 0, err
	}
	rev := resource.Revision(answer.Header.Revision)
	if len(answer.Kvs) == 0 {
		return record.KV{}, false, rev, nil
	}
	return convert(answer.Kvs[0]), true, rev, nil
}

// Range reads all keys that begin with prefix, in pages at one revision.
func (s *Store) Range(ctx context.Context, prefix string, o store.RangeOptions) ([]record.KV, resource.Revision, error) {
	if prefix == "" {
		return nil, 0, errors.New("range: prefix is empty")
	}
	end := clientv3.GetPrefixRangeEnd(prefix)
	from, at, left := prefix, int64(o.AtRevision), o.Limit
	if o.StartAfter != "" {
		from = max(prefix, o.StartAfter+"\x00")
	}
	if from >= end {
		// An empty range, which etcd would refuse; the revision still counts.
		answer, err := s.ask(ctx, "range "+prefix, &pb.RangeRequest{Key: []byte(prefix), Revision: at, CountOnly: true})
		if err != nil {
			return nil, 0, s.rangeError(ctx, prefix, at, err)
		}
		return nil, readRevision(at, answer), nil
	}
	var kvs []record.KV
	for {
		page := pageSize
		if o.Limit > 0 {
			page = min(page, left)
		}
		answer, err := s.ask(ctx, "range "+prefix, &pb.RangeRequest{Key: []byte(from), RangeEnd: []byte(end), Revision: at, Limit: int64(page)})
		if err != nil {
			return nil, 0, s.rangeError(ctx, prefix, at, err)
		}
		at = int64(readRevision(at, answer))
		if kvs == nil {
			n := len(answer.Kvs)
			if answer.More && o.Limit == 0 {
				n = int(answer.Count)
			}
			kvs = make([]record.KV, 0, n)
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

func readRevision(asked int64, answer *pb.RangeResponse) resource.Revision {
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
		return &record.CompactedError{Asked: resource.Revision(at), Floor: floor}
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("range %s at revision %d: %w", prefix, at, store.ErrFutureRevision)
	}
	return err
}

// floor learns the oldest revision kept from a watch that asks for less: the
// answer to a read does not contain it.
func (s *Store) floor(ctx context.Context, below int64) (floor resource.Revision, err error) {
	const what = "find the oldest revision"
	err = s.repeat(ctx, what, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the stream
		stream, err := s.watches.Watch(ctx, calls...)
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
			Key: []byte(record.Root), StartRevision: max(1, below),
		}}}); err != nil {
			return err
		}
		for {
			answer, err := stream.Recv()
			switch {
			case err != nil:
				return err
			case answer.CompactRevision != 0:
				floor = resource.Revision(answer.CompactRevision)
				return nil
			case answer.Canceled:
				return errors.New(answer.CancelReason)
			}
		}
	})
	return floor, err
}

// Compact drops versions of keys older than rev. An attempt that went
// unanswered may have done it; the next one then reports that rev is the floor.
func (s *Store) Compact(ctx context.Context, rev resource.Revision) error {
	what := fmt.Sprintf("compact to revision %d", rev)
	if _, err := s.history.before(); err != nil {
		return s.callError(what, err)
	}
	err := s.repeat(ctx, what, func(ctx context.Context) error {
		_, err := s.kv.Compact(ctx, &pb.CompactionRequest{Revision: int64(rev)}, calls...)
		return err
	})
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		floor, floorErr := s.floor(ctx, 1)
		if floorErr != nil {
			return floorErr
		}
		return &record.CompactedError{Asked: rev, Floor: floor}
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%s: %w", what, store.ErrFutureRevision)
	}
	return err
}
