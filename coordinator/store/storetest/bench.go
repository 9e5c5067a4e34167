package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/musterd/muster/coordinator/store"
)

// BenchmarkTxnCommit measures the Txn at the commit point of one allocation:
// leader, record, unit and identity compared, record, unit and index written.
// It closes the store.
func BenchmarkTxnCommit(b *testing.B, s store.Store) {
	ctx := context.Background()
	b.Cleanup(func() { _ = s.Close() })
	leader := store.LeaderKey(1)
	identity := store.NodeIdentityKey("node-1")
	r, err := s.Txn(ctx, store.Txn{Then: []store.Op{store.Put(leader, []byte("{}")), store.Put(identity, []byte("{}"))}})
	if err != nil {
		b.Fatal(err)
	}
	var counter atomic.Int64
	value := make([]byte, 700)
	commit := func() error {
		n := counter.Add(1)
		tx, unit := fmt.Sprintf("%s%d", store.TxPrefix, n), fmt.Sprintf("%sns/alloc/%d/0", store.UnitsPrefix, n)
		got, err := s.Txn(ctx, store.Txn{
			If: []store.Compare{store.CreateRevIs(leader, r.Revision), store.Absent(tx), store.Absent(unit), store.ModRevIs(identity, r.Revision)},
			Then: []store.Op{
				store.Put(tx, value), store.Put(unit, value), store.Put(fmt.Sprintf("%snode-1/tx/%d", store.NodesPrefix, n), []byte(`{"v":1}`)),
				store.Delete(fmt.Sprintf("%sq/%d", store.OrderPrefix, n)),
			},
		})
		if err == nil && !got.Succeeded {
			err = fmt.Errorf("transaction %d did not succeed", n)
		}
		return err
	}
	b.Run("one client", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := commit(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("64 clients", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32) // times GOMAXPROCS
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := commit(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
