package etcd

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/musterd/muster/coordinator/record"
)

// scripted answers Txns at a given revision and runs a hook at each read.
type scripted struct {
	past
	read func()
	txn  int64 // the revision of its answers to Txns
	sent int   // Txns
}

func (s *scripted) Range(ctx context.Context, r *pb.RangeRequest, options ...grpc.CallOption) (*pb.RangeResponse, error) {
	if s.read != nil {
		s.read()
	}
	return s.past.Range(ctx, r, options...)
}

func (s *scripted) Txn(context.Context, *pb.TxnRequest, ...grpc.CallOption) (*pb.TxnResponse, error) {
	s.sent++
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: s.txn}, Succeeded: false}, nil
}

var change = record.Txn{If: []record.Compare{record.Absent("/registry/b")}, Then: []record.Op{record.Put("/registry/b", []byte("1"))}}

// The answer of a store that went back is no answer about the store that the
// Txn was meant for: it may have been done there, or its refusal may be of
// another past.
func TestATxnAnsweredByAStoreThatWentBackIsInDoubt(t *testing.T) {
	kv := &scripted{past: past{writes: []write{{"/registry/a", "1"}, {"/registry/a", "2"}, {"/registry/a", "3"}}}, txn: 2}
	s := bare(t, kv)
	if _, _, _, err := s.Get(t.Context(), "/registry/a"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Txn(t.Context(), change)
	if !errors.Is(err, record.ErrUnknownOutcome) || !errors.Is(err, record.ErrWentBack) {
		t.Errorf("got %v, want ErrUnknownOutcome and ErrWentBack", err)
	}
	if kv.sent != 1 {
		t.Errorf("%d Txns were sent, want 1", kv.sent)
	}
}

// Compares that were made before a restoration must not meet the restored
// store, even if somebody else acknowledges the restoration first.
func TestATxnOfAnEraThatWasAcknowledgedMeanwhileIsNotSent(t *testing.T) {
	kv := &scripted{past: past{writes: []write{{"/registry/a", "1"}, {"/registry/a", "2"}}}, txn: 9}
	s := bare(t, kv)
	if _, _, _, err := s.Get(t.Context(), "/registry/a"); err != nil {
		t.Fatal(err)
	}
	kv.read = func() {
		kv.read = nil
		began, err := s.history.before()
		if err != nil {
			t.Error(err)
			return
		}
		back := new(record.WentBackError)
		if !errors.As(s.history.check(began, 1), &back) {
			t.Error("the restoration was not noticed")
		}
		s.Acknowledge(back)
	}
	s.history.connections.Add(1) // so that the past is looked at before the Txn is sent
	_, err := s.Txn(t.Context(), change)
	if !errors.Is(err, record.ErrWentBack) {
		t.Errorf("got %v, want ErrWentBack", err)
	}
	if kv.sent != 0 {
		t.Errorf("%d Txns were sent, want none", kv.sent)
	}
}

// The newest key that was read is not in the restored store, which has grown
// beyond the revision of before.
func TestAKeyThatIsGoneTellsOfARestoration(t *testing.T) {
	kv := &scripted{past: past{writes: []write{{"/registry/a", "1"}}}}
	s := bare(t, kv)
	if _, _, _, err := s.Get(t.Context(), "/registry/a"); err != nil {
		t.Fatal(err)
	}
	kv.writes = []write{{"/registry/b", "1"}, {"/registry/b", "2"}}
	s.history.connections.Add(1)
	if _, _, _, err := s.Get(t.Context(), "/registry/b"); !errors.Is(err, record.ErrWentBack) {
		t.Errorf("got %v, want ErrWentBack", err)
	}
}

func TestAnOldAcknowledgementDoesNotEndANewRestoration(t *testing.T) {
	h := newHistory()
	var found [2]*record.WentBackError
	for i := range found {
		h.saw(h.present(), version{key: "/registry/a", rev: 9})
		began, err := h.before()
		if err != nil {
			t.Fatal(err)
		}
		if !errors.As(h.check(began, 3), &found[i]) {
			t.Fatal("the restoration was not noticed")
		}
		if i == 0 {
			h.acknowledge(found[0])
		}
	}
	h.acknowledge(found[0])
	if _, err := h.before(); !errors.Is(err, record.ErrWentBack) {
		t.Errorf("after the acknowledgement of the restoration before: %v, want ErrWentBack", err)
	}
	h.acknowledge(found[1])
	if _, err := h.before(); err != nil {
		t.Errorf("after its own acknowledgement: %v", err)
	}
}

// Compares without an operation are answered by one member from its own state;
// with a read they are linearizable.
func TestATxnOfComparesAloneReadsToo(t *testing.T) {
	r := request(record.Txn{If: change.If})
	if len(r.Compare) != 1 || len(r.Success) != 1 || r.Success[0].GetRequestRange() == nil {
		t.Errorf("compares alone are sent as %v, want a read beside them", r)
	}
}
