package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Pauses between the attempts of a call that may be repeated.
const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// calls are the options of every call: the server's limits decide, not gRPC's.
var calls = []grpc.CallOption{grpc.MaxCallSendMsgSize(math.MaxInt32), grpc.MaxCallRecvMsgSize(math.MaxInt32)}

// repeat makes a call that may be made twice, until the answer is definite or
// ctx ends. Each attempt goes to the next member that is connected.
func (s *Store) repeat(ctx context.Context, what string, call func(context.Context) error) error {
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		err := s.within(ctx, s.requestTimeout, call)
		if !transient(err) {
			return s.callError(what, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			continue
		case <-ctx.Done():
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-s.ctx.Done():
		}
		timer.Stop()
		return s.callError(what, err)
	}
}

// within makes a call once, for no longer than limit. If it takes longer than a
// request should, the monitor looks at the members.
func (s *Store) within(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	short := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		short, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		defer time.AfterFunc(s.requestTimeout, s.look).Stop()
	}
	err := rpctypes.Error(call(short))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case short.Err() != nil:
		return unanswered{fmt.Errorf("no answer within %v: %w", limit, err)}
	}
	return err
}

// unanswered marks an attempt that ran into its limit.
type unanswered struct{ error }

func (e unanswered) Unwrap() error { return e.error }

// transient reports whether asking again may help.
func transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var slow unanswered
	if errors.As(err, &slow) {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return false // the caller's own
	}
	switch code(err) {
	case codes.Unavailable, codes.Internal, codes.Aborted:
		return true
	case codes.Canceled, codes.DeadlineExceeded: // on the server's side
		return true
	case codes.ResourceExhausted:
		return errors.Is(err, rpctypes.ErrTooManyRequests)
	case codes.Unknown:
		return givenUp(err)
	}
	return false
}

// givenUp reports whether a server has run out of time, which etcd before 3.5
// shows by the text alone.
func givenUp(err error) bool {
	text := told(err).Message()
	return text == context.DeadlineExceeded.Error() || text == context.Canceled.Error()
}

func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return told(err).Code()
}

// told is the status that a server, or gRPC, has answered; Unknown without a
// text for any other error.
func told(err error) *status.Status {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus()
	}
	return status.New(codes.Unknown, "")
}

// callError names the call and translates the errors that every call can meet.
func (s *Store) callError(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		err = store.ErrClosed
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		err = fmt.Errorf("%s: %w", what, record.ErrLeaseGone)
	case errors.Is(err, rpctypes.ErrNoSpace):
		s.look()
		err = fmt.Errorf("%s: %w", what, record.ErrNoSpace)
	default:
		err = fmt.Errorf("%s: %w", what, err)
	}
	s.metrics.failed(err)
	return err
}

// ask makes a linearizable read, at least once after the past was verified.
func (s *Store) ask(ctx context.Context, what string, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.verify(ctx); err != nil {
		return nil, err
	}
	began, err := s.history.before()
	if err != nil {
		return nil, s.callError(what, err)
	}
	answer, err := s.read(ctx, what, r)
	if err != nil {
		return nil, err
	}
	if err := s.history.check(began, resource.Revision(answer.Header.Revision)); err != nil {
		return nil, s.callError(what, err)
	}
	newest := -1
	for i, kv := range answer.Kvs {
		if newest < 0 || kv.ModRevision > answer.Kvs[newest].ModRevision {
			newest = i
		}
	}
	if newest >= 0 && !r.KeysOnly {
		kv := answer.Kvs[newest]
		if resource.Revision(kv.ModRevision) > began.seen {
			s.history.saw(began.era, versionOf(string(kv.Key), kv.Value, resource.Revision(kv.ModRevision)))
		}
	}
	return answer, nil
}

// read reads one key at the member that leads, if it is known and answers, and several
// at the members in turns.
func (s *Store) read(ctx context.Context, what string, r *pb.RangeRequest) (answer *pb.RangeResponse, err error) {
	err = s.repeat(ctx, what, func(ctx context.Context) (err error) {
		if m := s.near.current.Load(); m != nil && len(r.RangeEnd) == 0 {
			if answer, err = m.kv.Range(ctx, r, calls...); err == nil || !lost(ctx, err) {
				return err
			}
			s.near.drop(m)
			s.look()
		}
		answer, err = s.kv.Range(ctx, r, calls...)
		return err
	})
	return answer, err
}

// lost reports whether a call ended without an answer of its member.
func lost(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	switch code(rpctypes.Error(err)) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return true
	}
	return false
}

// verify finds out, after a new connection, whether the store's past is still
// the one that was seen. It costs one read per connection.
func (s *Store) verify(ctx context.Context) error {
	anchor, connections, doubted := s.history.doubt()
	if !doubted {
		return nil
	}
	const what = "compare the store's past with what was read before"
	began, err := s.history.before()
	if err != nil {
		return s.callError(what, err)
	}
	r := &pb.RangeRequest{Key: []byte(record.Root), Limit: 1}
	if anchor.key != "" {
		r = &pb.RangeRequest{Key: []byte(anchor.key), Revision: int64(anchor.rev)}
	}
	answer, err := s.read(ctx, what, r)
	gone := errors.Is(err, rpctypes.ErrFutureRev)
	if gone || errors.Is(err, rpctypes.ErrCompacted) {
		answer, err = s.read(ctx, what, &pb.RangeRequest{Key: []byte(record.Root), Limit: 1})
	} else if err == nil && anchor.key != "" {
		gone = !anchor.isIn(answer)
	}
	if err != nil {
		return err
	}
	rev := resource.Revision(answer.Header.Revision)
	if gone {
		err = s.history.lost(began, rev)
	} else {
		err = s.history.check(began, rev)
	}
	if err != nil {
		return s.callError(what, err)
	}
	s.history.trust(connections)
	return nil
}

// isIn reports whether the answer to a read of the version's key at its
// revision is that version.
func (v version) isIn(answer *pb.RangeResponse) bool {
	if len(answer.Kvs) != 1 {
		return false
	}
	kv := answer.Kvs[0]
	return versionOf(string(kv.Key), kv.Value, resource.Revision(kv.ModRevision)) == v
}

// Acknowledge ends the refusals that follow a *record.WentBackError.
func (s *Store) Acknowledge(e *record.WentBackError) { s.history.acknowledge(e) }
