package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// BenchmarkTxnCommit measures the Txn at the commit point of one allocation:
// leader, record, unit and identity compared, record, unit and index written.
// It closes the store.
func BenchmarkTxnCommit(b *testing.B, s store.Store) {
	ctx := context.Background()
	b.Cleanup(func() { _ = s.Close() })
	leader := record.LeaderKey(1)
	identity := record.NodeIdentityKey("node-1")
	r, err := s.Txn(ctx, record.Txn{Then: []record.Op{record.Put(leader, []byte("{}")), record.Put(identity, []byte("{}"))}})
	if err != nil {
		b.Fatal(err)
	}
	var counter atomic.Int64
	value := make([]byte, 700)
	commit := func() error {
		n := counter.Add(1)
		tx, unit := fmt.Sprintf("%s%d", record.TxPrefix, n), fmt.Sprintf("%sns/alloc/%d/0", record.UnitsPrefix, n)
		got, err := s.Txn(ctx, record.Txn{
			If: []record.Compare{record.CreateRevIs(leader, r.Revision), record.Absent(tx), record.Absent(unit), record.ModRevIs(identity, r.Revision)},
			Then: []record.Op{
				record.Put(tx, value), record.Put(unit, value), record.Put(fmt.Sprintf("%snode-1/tx/%d", record.NodesPrefix, n), []byte(`{"v":1}`)),
				record.Delete(fmt.Sprintf("%sq/%d", record.OrderPrefix, n)),
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
