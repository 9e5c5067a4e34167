package rpc_test

import (
	"context"
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// raced is a store on which another writer is faster, once: between the reads
// of a caller and its Txn.
type raced struct {
	store.KVStore
	other func()
}

func (s *raced) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if other := s.other; other != nil {
		s.other = nil
		other()
	}
	return s.KVStore.Txn(ctx, t)
}

func encode[R record.Type](t *testing.T, r R) []byte {
	t.Helper()
	value, err := record.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestARegistrationThatLosesARaceIsRepeated: the answer's revision is the one
// that commits are compared with, so it has to be that of the identity as it is
// after the other writer.
func TestARegistrationThatLosesARaceIsRepeated(t *testing.T) {
	const cordons = "with an operator, who writes the spec alone"
	for name, other := range map[string]func(t *testing.T, s *mem.Store){
		"with a fence, which writes the identity alone": func(t *testing.T, s *mem.Store) {
			put(t, s, record.Put(record.NodeIdentityKey("n1"), encode(t, record.NodeIdentity{Incarnation: resource.Incarnation{JournalID: "fenced", BootID: "fenced"}})))
		},
		cordons: func(t *testing.T, s *mem.Store) {
			spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1"))
			spec.Unschedulable = true
			put(t, s, record.Put(record.NodeSpecKey("n1"), encode(t, spec)))
		},
		"with a deletion": func(t *testing.T, s *mem.Store) {
			put(t, s, record.Delete(record.NodeIdentityKey("n1")), record.Delete(record.NodeSpecKey("n1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, s := open(t, mem.Options{})
			register(t, server, first)
			server.Store = &raced{KVStore: s, other: func() { other(t, s) }}
			answer := register(t, server, first)
			identity, kv := get[record.NodeIdentity](t, s, record.NodeIdentityKey("n1"))
			if identity.Incarnation != first || kv.ModRev != answer {
				t.Errorf("the agent is told revision %d; its identity is %+v at %d", answer, identity, kv.ModRev)
			}
			if spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1")); spec.Unschedulable != (name == cordons) {
				t.Errorf("the node is cordoned: %t", spec.Unschedulable)
			}
		})
	}
}
