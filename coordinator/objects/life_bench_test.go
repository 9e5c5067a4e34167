package objects_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// BenchmarkLife is the whole life of an allocation as the projection sees it: created and
// committed in one transaction, ready, releasing, and released. The coordinator that leads
// knows the records that it has written; the others decode them.
func BenchmarkLife(b *testing.B) {
	b.Run("decoded", func(b *testing.B) { life(b, func(*objects.Cache, record.Op) {}) })
	b.Run("known", func(b *testing.B) {
		life(b, func(c *objects.Cache, op record.Op) {
			if op.Of != nil {
				c.Know(op.Key, op.Of)
			}
		})
	})
}

func life(b *testing.B, know func(*objects.Cache, record.Op)) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, kvs := objects.New(), map[string]record.KV{}
	rev := resource.Revision(1)
	write := func(ops ...record.Op) {
		for _, op := range ops {
			if op.Delete {
				delete(kvs, op.Key)
			} else {
				kv := record.KV{Key: op.Key, Value: op.Value, ModRev: rev, CreateRev: rev}
				if before, there := kvs[op.Key]; there {
					kv.CreateRev = before.CreateRev
				}
				kvs[op.Key] = kv
			}
			c.Touch(op.Key)
			know(c, op)
		}
		if err := c.Refresh(kvs, rev, now); err != nil {
			b.Fatal(err)
		}
		rev++
	}
	write()
	c.KeepEvents(events.New(events.Default, now), "c1", rev, now)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		u, held := running(i)
		tx := u.TxID
		write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), held))
		write(record.MustPutRecord(record.ReadyKey(tx), record.Ready{AtMillis: 1}))
		u.Phase, held.State = "Terminating", grant.RecordReleasing
		write(record.MustPutRecord(u.Path().Key(), u), record.MustPutRecord(record.TxKey(tx), held))
		held.State, held.Ended = grant.RecordReleased, "2026-01-02T03:04:06Z"
		write(record.Delete(u.Path().Key()), record.MustPutRecord(record.TxKey(tx), held))
		delete(kvs, record.TxKey(tx)) // the record is collected later
		delete(kvs, record.ReadyKey(tx))
	}
}

// running is an allocation of one GPU that runs, and its record.
func running(i int) (record.Unit, record.Tx) {
	name, tx := fmt.Sprint("a-", i), resource.TxID(fmt.Sprintf("u%d.1.1.%032x", i, i))
	u := record.Unit{
		UID: resource.UnitUID(fmt.Sprint("u", i)), Kind: record.AllocUnit, Namespace: "bench", Name: name, Tenant: "bench", Queue: "default",
		Phase: "Running", Members: 1, Sequence: record.Sequence{Epoch: 1, Counter: uint64(i)}, TxID: tx, Created: "2026-01-02T03:04:05Z", Started: "2026-01-02T03:04:05Z",
		Document: fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"nvidia.com/gpu":"1","cpu":"4","memory":"16Gi"}}}}`, name),
	}
	held := record.Tx{State: grant.RecordCommitted, Epoch: 1, Unit: u.Path(), UnitUID: u.UID, Tenant: u.Tenant, Committed: "2026-01-02T03:04:05Z"}
	held.Charges = []record.Charge{{Tree: "namespaces", Group: "bench", Request: resource.Vector{resource.GPU: 1000, resource.CPU: 4000, resource.Memory: 16 << 30}}}
	held.Members = []record.Placement{{Node: resource.NodeID(fmt.Sprint("n", i%100)), Incarnation: resource.Incarnation{JournalID: "journal", BootID: "boot"}, Assignment: resource.Assignment{
		GPUs:   []resource.GPUGrant{{Index: 1, UUID: "GPU-00000000-0000-0000-0000-000000000001", Milli: 1000}},
		CPUs:   []resource.CPUGrant{{ID: 1, Milli: 1000}, {ID: 2, Milli: 1000}, {ID: 3, Milli: 1000}, {ID: 4, Milli: 1000}},
		Memory: []resource.MemoryGrant{{Node: 0, Bytes: 16 << 30}},
	}}}
	return u, held
}
