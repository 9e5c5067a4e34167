package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// bare is a store on a client's interface alone.
func bare(t testing.TB, kv pb.KVClient) *Store {
	t.Helper()
	h := newHistory()
	m, err := newMetrics(nil, h)
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{kv: kv, history: h, metrics: m, log: slog.New(slog.DiscardHandler), maxTxnOps: 128, requestTimeout: time.Second}
	s.monitor = newMonitor(make(chan struct{}, 1), inside{}, time.Second, s.log, m)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	t.Cleanup(s.cancel)
	return s
}

// past is etcd as far as reads of one key at a revision go: a list of writes,
// the one at index i at revision i+2.
type past struct {
	pb.KVClient
	writes  []write
	floor   int64
	answers int
}

type write struct{ key, value string }

func (p *past) rev() int64 { return int64(len(p.writes)) + 1 }

func (p *past) Range(_ context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	p.answers++
	at := r.Revision
	switch {
	case at > p.rev():
		return nil, rpctypes.ErrGRPCFutureRev
	case at != 0 && at < p.floor:
		return nil, rpctypes.ErrGRPCCompacted
	case at == 0:
		at = p.rev()
	}
	answer := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: p.rev()}}
	for i := int(at) - 2; i >= 0; i-- {
		if w := p.writes[i]; w.key == string(r.Key) {
			answer.Kvs = []*mvccpb.KeyValue{{Key: r.Key, Value: []byte(w.value), ModRevision: int64(i) + 2}}
			break
		}
	}
	return answer, nil
}

// TestHistoryProperty: after any history of a store, a client gets the error if
// and only if it has seen a write that is gone; at the latest when it is next
// connected.
func TestHistoryProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &past{}
		s := bare(t, p)
		ctx := context.Background()
		var seen []write // the prefix of the past that the client knows
		known := func() bool {
			return len(seen) <= len(p.writes) && fmt.Sprint(seen) == fmt.Sprint(p.writes[:len(seen)])
		}
		lost := false // a seen write is gone and the client has been connected since
		n := 0
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"write", "read", "watch", "restore", "reconnect", "compact"}).Draw(rt, "step") {
			case "write": // by anybody; every value is its own
				n++
				p.writes = append(p.writes, write{rapid.SampledFrom([]string{"/registry/a", "/registry/b"}).Draw(rt, "key"), fmt.Sprint(n)})
			case "read":
				key := rapid.SampledFrom([]string{"/registry/a", "/registry/b"}).Draw(rt, "key")
				_, _, rev, err := s.Get(ctx, key)
				var back *record.WentBackError
				switch {
				case errors.As(err, &back):
					if known() {
						rt.Fatalf("%v, but all of %v is in %v", err, seen, p.writes)
					}
					s.Acknowledge(back)
					seen = nil
				case err != nil:
					rt.Fatal(err)
				case lost:
					rt.Fatalf("read at revision %d: %v had been seen and %v is there", rev, seen, p.writes)
				default:
					// A read shows one key, and so one write.
					if known() {
						seen = p.writes[:len(p.writes):len(p.writes)]
					}
				}
			case "watch": // shows the newest write
				if len(p.writes) > 0 && known() && !lost {
					w := p.writes[len(p.writes)-1]
					s.history.saw(s.history.present(), versionOf(w.key, []byte(w.value), resource.Revision(p.rev())))
					seen = p.writes[:len(p.writes):len(p.writes)]
				}
			case "restore":
				p.writes = p.writes[:rapid.IntRange(0, len(p.writes)).Draw(rt, "kept"):len(p.writes)]
				p.writes = append([]write(nil), p.writes...)
				p.floor = min(p.floor, p.rev())
				if rapid.Bool().Draw(rt, "in sight") { // not so behind a proxy
					s.history.connections.Add(1)
				}
			case "reconnect":
				s.history.connections.Add(1)
			case "compact":
				p.floor = p.rev()
			}
			// A compacted anchor cannot be compared: then only the revision
			// shows it.
			anchor := s.history.anchor
			readable := anchor.key != "" && int64(anchor.rev) >= p.floor
			_, _, doubted := s.history.doubt()
			lost = !known() && (p.rev() < int64(s.history.newest()) || doubted && readable && !stands(p, anchor))
		}
	})
}

// stands reports whether a version is in the past.
func stands(p *past, v version) bool {
	i := int(v.rev) - 2
	return i < len(p.writes) && versionOf(p.writes[i].key, []byte(p.writes[i].value), v.rev) == v
}

// TestRepeatIsNoSpin: a call that cannot be made is tried again with pauses
// until its caller's time is up.
func TestRepeatIsNoSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bare(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := 0
		start := time.Now()
		err := s.repeat(ctx, "ask", func(context.Context) error {
			n++
			return status.Error(codes.Unavailable, "connection refused")
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if n < 30 || n > 80 {
			t.Errorf("%d attempts in a minute", n)
		}
		s.cancel()
		if err := s.repeat(t.Context(), "ask", func(context.Context) error { return status.Error(codes.Unavailable, "closing") }); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}

// TestAnUnansweredAttemptIsRepeated, within the caller's time; a Txn is not.
func TestAnUnansweredAttemptIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &silent{}
		s := bare(t, p)
		_, _, _, err := s.Get(t.Context(), "/registry/a")
		if err != nil || p.reads != 3 {
			t.Errorf("%d reads, %v; want the third to be answered", p.reads, err)
		}
		_, err = s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put("/registry/a", nil)}})
		if !errors.Is(err, record.ErrUnknownOutcome) || p.txns != 1 {
			t.Errorf("%d transactions sent, %v; want one of unknown outcome", p.txns, err)
		}
	})
}

// silent answers the third read and nothing else.
type silent struct {
	pb.KVClient
	reads, txns int
}

func (s *silent) Range(ctx context.Context, _ *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	if s.reads++; s.reads == 3 {
		return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}, nil
	}
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

func (s *silent) Txn(ctx context.Context, _ *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	s.txns++
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}
