package rpc_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// The most that one node's records take in the store, in bytes.
const (
	mostSpec     = 160 << 10
	mostIdentity = 1 << 10
	mostStatus   = 320 << 10 // with the uses of all devices and instances; JSON writes a quotation mark as two bytes
	mostFence    = 512
)

// seeds are messages as bytes.
func seed(f *testing.F, ms ...proto.Message) {
	for _, m := range ms {
		encoded, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
}

// stored reads everything and holds each record to its size.
func stored(t *testing.T, s *mem.Store, most map[string]int) map[string][]byte {
	t.Helper()
	kvs, _, err := s.Range(context.Background(), "/", store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, kv := range kvs {
		all[kv.Key] = kv.Value
		kind := kv.Key[strings.LastIndexByte(kv.Key, '/')+1:]
		if strings.HasPrefix(kv.Key, record.TxPrefix) {
			kind = "tx"
		}
		if limit, known := most[kind]; !known || len(kv.Key)+len(kv.Value) > limit {
			t.Errorf("%s takes %d bytes, want at most %d", kv.Key, len(kv.Key)+len(kv.Value), limit)
		}
		for _, r := range string(kv.Value) {
			if unicode.Is(unicode.Cc, r) {
				t.Errorf("%s holds the control character %U", kv.Key, r)
			}
		}
	}
	return all
}

// FuzzRegister: from the bytes of a registration to the records of the node.
func FuzzRegister(f *testing.F) {
	f.Fuzz(func(t *testing.T, encoded []byte) {
		r := &musterv1.RegisterRequest{}
		if limits.Decode(encoded, r) != nil {
			return
		}
		r.Cluster = "c"
		s := mem.Open(mem.Options{})
		defer s.Close()
		server := &rpc.Server{Cluster: "c", Store: s, Logger: quiet}
		done, err := server.Register(t.Context(), r)
		all := stored(t, s, map[string]int{"spec": mostSpec, "identity": mostIdentity})
		if err != nil {
			if status.Code(err) != codes.InvalidArgument || len(all) > 0 || len(err.Error()) > 2048 {
				t.Fatalf("refused with %d keys written: %.2048v", len(all), err)
			}
			return
		}
		node := resource.NodeID(r.GetNodeId())
		spec, err := record.Decode[record.NodeSpec]("spec", all[record.NodeSpecKey(node)])
		if err != nil || spec.Capacity[resource.Memory] > int64(resource.MaxMemory) || spec.Topology.GPUs > 64 {
			t.Fatalf("spec %+v: %v", spec, err)
		}
		if _, err := record.Decode[record.NodeIdentity]("identity", all[record.NodeIdentityKey(node)]); err != nil {
			t.Fatal(err)
		}
		again, err := server.Register(t.Context(), r)
		if err != nil || again.GetRevision() != done.GetRevision() {
			t.Fatalf("registered at %d, then at %d: %v", done.GetRevision(), again.GetRevision(), err)
		}
	})
}

// said is a stream of one heartbeat.
type said struct {
	grpc.ServerStream
	ctx   context.Context
	beats []*schedulerv1.HeartbeatRequest
}

func (s *said) Context() context.Context                  { return s.ctx }
func (s *said) Send(*schedulerv1.HeartbeatResponse) error { return nil }
func (s *said) Recv() (next *schedulerv1.HeartbeatRequest, _ error) {
	if len(s.beats) == 0 {
		return nil, io.EOF
	}
	next, s.beats = s.beats[0], s.beats[1:]
	return next, nil
}

// FuzzHeartbeat: from the bytes of a heartbeat to the node's status.
func FuzzHeartbeat(f *testing.F) {
	f.Fuzz(func(t *testing.T, encoded []byte) {
		r := &schedulerv1.HeartbeatRequest{}
		if limits.Decode(encoded, r) != nil {
			return
		}
		r.NodeId = "n1"
		s := mem.Open(mem.Options{})
		defer s.Close()
		identity, err := record.Encode(record.NodeIdentity{Incarnation: first})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.NodeIdentityKey("n1"), identity)}}); err != nil {
			t.Fatal(err)
		}
		beats := &rpc.Heartbeats{CoordinatorID: "c1", Store: s, Logger: quiet}
		if err := beats.Heartbeat(&said{ctx: t.Context(), beats: []*schedulerv1.HeartbeatRequest{r, r}}); err != nil {
			t.Fatal(err)
		}
		all := stored(t, s, map[string]int{"identity": mostIdentity, "status": mostStatus, "lease": mostIdentity})
		if value := all[record.NodeStatusKey("n1")]; value != nil {
			status, err := record.Decode[record.NodeStatus]("status", value)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range status.Devices {
				if _, possible := devices.Use(use).Within(0); !possible {
					t.Errorf("use %+v", use)
				}
			}
			for name, amount := range status.Usage {
				if amount < 0 || amount > int64(resource.MaxMemory) {
					t.Errorf("usage of %s is %d", name, amount)
				}
			}
		}
	})
}

// FuzzResolve: from the bytes of a fence to the record that it leaves.
func FuzzResolve(f *testing.F) {
	seed(f, &musterv1.ResolveRequest{NodeId: "n1", Tx: string(newTx()), Fence: true})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		r := &musterv1.ResolveRequest{}
		if limits.Decode(encoded, r) != nil {
			return
		}
		s := mem.Open(mem.Options{})
		defer s.Close()
		server := &rpc.Server{Cluster: "c", Store: s, Logger: quiet}
		answer, err := server.Resolve(t.Context(), r)
		all := stored(t, s, map[string]int{"tx": mostFence})
		if (err == nil && r.GetFence()) != (len(all) == 1) {
			t.Fatalf("%d records, answer %v, %v", len(all), answer, err)
		}
		for key, value := range all {
			rec, err := record.Decode[record.Tx](key, value)
			if err != nil || rec.State != grant.RecordAborted || key != record.TxKey(resource.TxID(r.GetTx())) || answer.GetRecord().GetState() != musterv1.Record_ABORTED {
				t.Fatalf("%s: %+v, %v, answer %v", key, rec, err, answer)
			}
		}
	})
}

// FuzzEvict: from the bytes of an agent's wish to the request to the leader.
func FuzzEvict(f *testing.F) {
	seed(f, &musterv1.EvictAllocationRequest{NodeId: "n1", Allocation: "ns/a", GraceSeconds: -1, Reason: "r"})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		r := &musterv1.EvictAllocationRequest{}
		if limits.Decode(encoded, r) != nil {
			return
		}
		server := &rpc.Server{Cluster: "c", Logger: quiet, Evictor: func(_ context.Context, e rpc.Eviction) (resource.TxID, resource.Revision, error) {
			if e.Node == "" || (e.Tx == "") == (e.Name == "" || e.Namespace == "") || len(e.Reason) > limits.MaxReason {
				t.Errorf("asked for %+v", e)
			}
			return "tx", 1, nil
		}}
		if _, err := server.Evict(t.Context(), r); err != nil && status.Code(err) != codes.InvalidArgument {
			t.Error(err)
		}
	})
}
