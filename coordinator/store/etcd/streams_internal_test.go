package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// lessor answers calls about leases.
type lessor struct {
	pb.LeaseClient
	grpc.ClientStream
	granted []int64 // seconds
	left    int64   // seconds of a live lease
	calls   int
}

func (l *lessor) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest, _ ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	l.calls++
	l.granted = append(l.granted, r.TTL)
	return &pb.LeaseGrantResponse{ID: 7, TTL: r.TTL}, nil
}

func (l *lessor) LeaseRevoke(context.Context, *pb.LeaseRevokeRequest, ...grpc.CallOption) (*pb.LeaseRevokeResponse, error) {
	l.calls++
	return &pb.LeaseRevokeResponse{}, nil
}

func (l *lessor) LeaseKeepAlive(context.Context, ...grpc.CallOption) (pb.Lease_LeaseKeepAliveClient, error) {
	l.calls++
	return l, nil
}

func (l *lessor) Send(*pb.LeaseKeepAliveRequest) error { return nil }

func (l *lessor) Recv() (*pb.LeaseKeepAliveResponse, error) {
	return &pb.LeaseKeepAliveResponse{ID: 7, TTL: l.left}, nil
}

// TestTheTimeOfALease: whole seconds, rounded up, and a lease without time left is gone.
func TestTheTimeOfALease(t *testing.T) {
	for ttl, want := range map[time.Duration]int64{1: 1, time.Second: 1, time.Second + 1: 2, 1999 * time.Millisecond: 2, 30 * time.Second: 30} {
		l := &lessor{}
		s := bare(t, &past{})
		s.leases = l
		if got, err := s.Grant(t.Context(), ttl); err != nil || !slices.Equal(l.granted, []int64{want}) || got.TTL != time.Duration(want)*time.Second {
			t.Errorf("%s: asked for %v s, %+v, %v; want %d s", ttl, l.granted, got, err, want)
		}
	}
	for _, ttl := range []time.Duration{0, -1} {
		l := &lessor{}
		s := bare(t, &past{})
		s.leases = l
		if _, err := s.Grant(t.Context(), ttl); err == nil || l.calls > 0 {
			t.Errorf("a lease of %s: %v after %d calls", ttl, err, l.calls)
		}
	}
	for left, gone := range map[int64]bool{1: false, 0: true, -1: true} {
		s := bare(t, &past{})
		s.leases = &lessor{left: left}
		if err := s.KeepAlive(t.Context(), 7); errors.Is(err, record.ErrLeaseGone) != gone || !gone && err != nil {
			t.Errorf("with %d s left: %v, want gone %t", left, err, gone)
		}
	}
}

// compacted counts compactions.
type compacted struct {
	past
	calls int
}

func (c *compacted) Compact(context.Context, *pb.CompactionRequest, ...grpc.CallOption) (*pb.CompactionResponse, error) {
	c.calls++
	return &pb.CompactionResponse{}, nil
}

// TestAStoreThatWentBackTakesNoCall: of any kind, until the restoration is acknowledged. Over a new
// connection the past is read before a lease is asked for.
func TestAStoreThatWentBackTakesNoCall(t *testing.T) {
	kv, l := &compacted{past: past{writes: []write{{"/registry/a", "1"}}}}, &lessor{left: 9}
	s := bare(t, kv)
	s.leases = l
	calls := map[string]func() error{
		"grant":      func() error { _, err := s.Grant(t.Context(), time.Second); return err },
		"keep alive": func() error { return s.KeepAlive(t.Context(), 7) },
		"revoke":     func() error { return s.Revoke(t.Context(), 7) },
		"compact":    func() error { return s.Compact(t.Context(), 2) },
		"get":        func() error { _, _, _, err := s.Get(t.Context(), "/registry/a"); return err },
	}
	for name, call := range calls {
		if name == "compact" || name == "get" {
			continue
		}
		s.history.connections.Add(1)
		before := kv.answers
		if err := call(); err != nil || kv.answers == before {
			t.Errorf("%s over a new connection: %v after %d reads of the past", name, err, kv.answers-before)
		}
	}
	asked := l.calls
	s.history.mu.Lock()
	back := s.history.fail(1).(*record.WentBackError)
	s.history.mu.Unlock()
	for name, call := range calls {
		if err := call(); !errors.Is(err, record.ErrWentBack) {
			t.Errorf("%s of a store that went back: %v", name, err)
		}
	}
	if l.calls != asked || kv.calls != 0 {
		t.Errorf("%d calls about leases and %d compactions were sent to a store that went back", l.calls-asked, kv.calls)
	}
	s.Acknowledge(back)
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s after the acknowledgement: %v", name, err)
		}
	}
}

// current is the stream of a watch, with the number of requests.
type current struct {
	grpc.ClientStream
	asked int
}

func (c *current) Send(*pb.WatchRequest) error      { c.asked++; return nil }
func (c *current) Recv() (*pb.WatchResponse, error) { return nil, errors.New("not used") }
func alive(rev int64) *pb.WatchResponse {
	return &pb.WatchResponse{WatchId: -1, Header: &pb.ResponseHeader{Revision: rev}}
}
func (c *current) give(t *testing.T, w *watch, at ...time.Duration) (took time.Duration) {
	t.Helper()
	began, answers := time.Now(), make(chan *pb.WatchResponse)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for _, d := range at {
			time.Sleep(d - time.Since(began))
			select {
			case answers <- alive(1):
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := w.deliver(ctx, c, answers); err != nil {
		t.Error(err)
	}
	return time.Since(began)
}

// TestASilentStreamIsGivenUp: after as many seconds without a sign of life as the patience; the
// patience doubles up to the bound, and a sign of life resets the patience.
func TestASilentStreamIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bare(t, nil)
		w := &watch{store: s, prefix: record.Root, next: 10, out: make(chan record.Batch, 9), era: s.history.present(), patience: minPatience}
		for _, want := range []int{2, 4, 8, 16, 32, 64, 64, 64} {
			c := &current{}
			if took := c.give(t, w); took != time.Duration(want)*time.Second || c.asked != want-1 {
				t.Errorf("given up after %s and %d questions, want %d s and %d", took, c.asked, want, want-1)
			}
		}
		c := &current{}
		if took := c.give(t, w, 1500*time.Millisecond); took != 3*time.Second {
			t.Errorf("after a sign of life at 1.5 s the stream is given up at %s, want 3 s", took)
		}
		w.patience = minPatience
		// Signs of life in time keep a stream for ever.
		if took := c.give(t, w, 1500*time.Millisecond, 2500*time.Millisecond, 3500*time.Millisecond); took != 5*time.Second {
			t.Errorf("after the last sign of life at 3.5 s the stream is given up at %s, want 5 s", took)
		}
		w.patience = maxPatience
		if goOn, err := w.take(t.Context(), &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 12}, Events: []*mvccpb.Event{{Kv: &mvccpb.KeyValue{Key: []byte("/registry/a"), ModRevision: 12}}}}); !goOn || err != nil || w.patience != minPatience {
			t.Errorf("after an event: goes on %t, %v, patience %d", goOn, err, w.patience)
		}
		if s.history.newest() != 12 {
			t.Errorf("the event at 12 is no past: the newest revision is %d", s.history.newest())
		}
	})
}

// TestWhatEndsAWatch: a compaction and a restoration for good, a refusal and a failed look at the
// past for the present stream alone.
func TestWhatEndsAWatch(t *testing.T) {
	kv := &past{writes: []write{{"/registry/a", "1"}, {"/registry/a", "2"}, {"/registry/a", "3"}}}
	s := bare(t, kv)
	if _, _, _, err := s.Get(t.Context(), "/registry/a"); err != nil {
		t.Fatal(err)
	}
	w := &watch{store: s, prefix: record.Root, next: 10, out: make(chan record.Batch, 9), era: s.history.present(), patience: minPatience}
	var gone *record.CompactedError
	if goOn, err := w.take(t.Context(), &pb.WatchResponse{CompactRevision: 30}); goOn || !errors.As(err, &gone) || gone.Asked != 10 || gone.Floor != 30 {
		t.Errorf("a compacted watch: goes on %t, %v", goOn, err)
	}
	if goOn, err := w.take(t.Context(), &pb.WatchResponse{Canceled: true, CancelReason: "x"}); goOn || err != nil {
		t.Errorf("a refused watch: goes on %t, %v; want another stream", goOn, err)
	}
	before := kv.answers
	s.history.connections.Add(1)
	if goOn, err := w.take(t.Context(), &pb.WatchResponse{Created: true}); !goOn || err != nil || kv.answers == before {
		t.Errorf("a new stream: goes on %t, %v after %d reads of the past", goOn, err, kv.answers-before)
	}
	kv.writes = kv.writes[:1]
	s.history.connections.Add(1)
	if goOn, err := w.take(t.Context(), &pb.WatchResponse{Created: true}); goOn || !errors.Is(err, record.ErrWentBack) {
		t.Errorf("a new stream of a restored store: goes on %t, %v", goOn, err)
	}
	if err := w.deliver(t.Context(), &current{}, make(chan *pb.WatchResponse)); !errors.Is(err, record.ErrWentBack) {
		t.Errorf("a stream of an era that is over: %v", err)
	}
	out := make(chan record.Batch, 1)
	w.out = out
	w.run(t.Context())
	if b := <-out; !errors.Is(b.Err, record.ErrWentBack) {
		t.Errorf("a watch of an era that is over ends with %v", b.Err)
	}
	s.Acknowledge(s.history.present().err)
	for _, o := range []store.WatchOptions{{From: 0}, {From: -1}} {
		if b := <-s.Watch(t.Context(), record.Root, o); b.Err == nil {
			t.Errorf("a watch from %d begins", o.From)
		}
	}
}

// shelf is a store of keys with a new revision at each read.
type shelf struct {
	pb.KVClient
	keys  []string
	rev   int64
	asked []*pb.RangeRequest
}

func (s *shelf) Range(_ context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	s.asked = append(s.asked, r)
	s.rev++
	answer := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: s.rev}}
	for _, key := range s.keys {
		if key < string(r.Key) || key >= string(r.RangeEnd) {
			continue
		}
		answer.Count++
		if r.Limit > 0 && int64(len(answer.Kvs)) == r.Limit {
			answer.More = true
			continue
		}
		if !r.CountOnly {
			answer.Kvs = append(answer.Kvs, &mvccpb.KeyValue{Key: []byte(key), ModRevision: 1})
		}
	}
	return answer, nil
}

// TestPagesOfARange: each key once, at the revision of the first page, up to the limit.
func TestPagesOfARange(t *testing.T) {
	for name, c := range map[string]struct {
		keys, limit int
		after       int // number of the key; -1: from the first key
		at          resource.Revision
		first, want int
	}{
		"a page":                           {1000, 0, -1, 0, 0, 1000},
		"a page and a key":                 {1001, 0, -1, 0, 0, 1001},
		"several pages":                    {2500, 0, -1, 0, 0, 2500},
		"several pages of a past revision": {2500, 0, -1, 77, 0, 2500},
		"a limit of one":                   {2500, 1, -1, 0, 0, 1},
		"a limit of a page":                {2500, 1000, -1, 0, 0, 1000},
		"a limit of a page and a key":      {2500, 1001, -1, 0, 0, 1001},
		"a limit beyond all":               {2500, 9000, -1, 0, 0, 2500},
		"after a key":                      {2500, 0, 1700, 0, 1701, 799},
		"after a key, with a limit":        {2500, 2, 1700, 0, 1701, 2},
		"after the last key":               {10, 0, 9, 0, 0, 0},
		"no key":                           {0, 0, -1, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kv := &shelf{rev: 100}
			for i := range c.keys {
				kv.keys = append(kv.keys, fmt.Sprintf("/registry/units/%05d", i))
			}
			o := store.RangeOptions{Limit: c.limit, AtRevision: c.at}
			if c.after >= 0 {
				o.StartAfter = kv.keys[c.after]
			}
			got, rev, err := bare(t, kv).Range(t.Context(), "/registry/units/", o)
			if err != nil || len(got) != c.want {
				t.Fatalf("%d keys, %v; want %d", len(got), err, c.want)
			}
			for i, k := range got {
				if k.Key != kv.keys[c.first+i] {
					t.Fatalf("key %d is %s, want %s", i, k.Key, kv.keys[c.first+i])
				}
			}
			want := c.at
			if want == 0 {
				want = 101
			}
			for i, r := range kv.asked {
				if i > 0 && resource.Revision(r.Revision) != want || r.Limit > pageSize {
					t.Errorf("page %d is read at revision %d with the limit %d, want %d", i+1, r.Revision, r.Limit, want)
				}
			}
			if rev != want {
				t.Errorf("the range is at revision %d, want %d", rev, want)
			}
		})
	}
}

// TestThePastOfAnEra: an older version, an answer and a change of another era leave the past alone.
func TestThePastOfAnEra(t *testing.T) {
	h := newHistory()
	began, err := h.before()
	if err != nil {
		t.Fatal(err)
	}
	newer, older := versionOf("/registry/a", []byte("2"), 9), versionOf("/registry/b", []byte("1"), 5)
	h.saw(began.era, newer)
	h.saw(began.era, older)
	if h.anchor != newer || h.newest() != 9 {
		t.Errorf("the anchor is %+v at %d, want the newer version", h.anchor, h.newest())
	}
	h.trust(4)
	h.trust(3)
	if h.verified != 4 {
		t.Errorf("%d connections are verified, want 4", h.verified)
	}
	was, err := h.before()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.check(was, 8); !errors.Is(err, record.ErrWentBack) {
		t.Fatalf("an older answer: %v", err)
	}
	h.acknowledge(h.now.err)
	now, err := h.before()
	if err != nil || now.seen != 0 || h.anchor != (version{}) {
		t.Errorf("after the acknowledgement: %+v, anchor %+v, %v", now, h.anchor, err)
	}
	h.saw(was.era, newer)
	if err := errors.Join(h.check(was, 2), h.lost(was, 2)); err != nil || h.newest() != 0 || h.now.over() {
		t.Errorf("answers of the era before: %v, newest %d, over %t", err, h.newest(), h.now.over())
	}
	if err := h.check(now, 3); err != nil || h.newest() != 3 {
		t.Errorf("the first answer of the new era: %v, newest %d", err, h.newest())
	}
}

// TestErrorsOfTransactions: which are refusals, and which leave the outcome open.
func TestErrorsOfTransactions(t *testing.T) {
	txn := record.Txn{Then: []record.Op{record.Delete("/registry/a"), record.Put("/registry/b", []byte("1"))}}
	for err, want := range map[error]string{
		rpctypes.ErrTooManyOps: "too_large", rpctypes.ErrRequestTooLarge: "too_large", rpctypes.ErrNoSpace: "no_space", rpctypes.ErrLeaseNotFound: "lease_gone",
		rpctypes.ErrDuplicateKey: "refused", rpctypes.ErrPermissionDenied: "refused", rpctypes.ErrInvalidAuthToken: "refused", rpctypes.ErrTooManyRequests: "refused",
		status.Error(codes.ResourceExhausted, "grpc: received message larger than max"): "too_large",
		status.Error(codes.InvalidArgument, "x"):                                        "refused", status.Error(codes.PermissionDenied, "x"): "refused", status.Error(codes.Unauthenticated, "x"): "refused",
		status.Error(codes.Unimplemented, "x"): "refused", status.Error(codes.Unavailable, "x"): "unknown_outcome", status.Error(codes.Internal, "x"): "unknown_outcome",
		status.Error(codes.Unknown, "x"): "unknown_outcome", context.DeadlineExceeded: "unknown_outcome", context.Canceled: "unknown_outcome",
	} {
		if got := kind(txnError(txn, 128, err)); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
	if v := written(txn, 9); v != versionOf("/registry/b", []byte("1"), 9) {
		t.Errorf("the version that a transaction wrote is %+v, want the key that it put", v)
	}
	if v := written(record.Txn{Then: txn.Then[:1]}, 9); v != (version{rev: 9}) {
		t.Errorf("the version of a deletion alone is %+v, want the revision alone", v)
	}
	deleted := record.Batch{Revision: 9, Events: []record.Event{{Type: record.EventDelete, KV: record.KV{Key: "/registry/a", ModRev: 9}}, {KV: record.KV{Key: "/registry/b", Value: []byte("1"), ModRev: 9}}}}
	if v := newest(deleted); v != versionOf("/registry/b", []byte("1"), 9) {
		t.Errorf("the version of a batch is %+v, want that of the key that was put", v)
	}
}

// refusing answers each transaction with an error.
type refusing struct {
	pb.KVClient
	err error
}

func (r refusing) Txn(context.Context, *pb.TxnRequest, ...grpc.CallOption) (*pb.TxnResponse, error) {
	return &pb.TxnResponse{}, r.err
}

// TestAFullStoreCanBeConnectedTo: the monitor makes room, or names the alarm.
func TestAFullStoreCanBeConnectedTo(t *testing.T) {
	for err, want := range map[error]string{nil: "", rpctypes.ErrGRPCNoSpace: "", rpctypes.ErrGRPCPermissionDenied: "permission denied"} {
		got := bare(t, refusing{err: err}).mayWrite(t.Context())
		if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v, want %q", err, got, want)
		}
	}
}
