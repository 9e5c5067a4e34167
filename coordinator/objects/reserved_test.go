package objects_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/objects/objectstest"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestReservedIsTheChargeOfWhatHasNotStarted: whatever happens, the reserved part of a quota is
// the charge of the transactions that are live and have no ready key. The sum is made of the
// keys alone.
func TestReservedIsTheChargeOfWhatHasNotStarted(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(20) {
		world, cache, kvs := objectstest.New(seed, "a", "b"), objects.New(), map[string]record.KV{}
		for step := range 150 {
			at := resource.Revision(step + 1)
			for _, op := range world.Change() {
				if op.Delete {
					delete(kvs, op.Key)
				} else {
					kv := record.KV{Key: op.Key, Value: op.Value, ModRev: at, CreateRev: at}
					if before, found := kvs[op.Key]; found {
						kv.CreateRev = before.CreateRev
					}
					kvs[op.Key] = kv
				}
				cache.Touch(op.Key)
			}
			if err := cache.Refresh(kvs, at, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			for q := range cache.View(at, time.Unix(0, 0)).ResourceQuotas("") {
				var want int64
				for key, kv := range kvs {
					tx, err := record.ParseTxKey(key)
					if err != nil {
						continue
					}
					rec, err := record.Decode[record.Tx](key, kv.Value)
					if err != nil {
						t.Fatal(err)
					}
					if _, ready := kvs[record.ReadyKey(tx)]; ready || rec.State.Terminal() {
						continue
					}
					for _, c := range rec.Charges {
						if c.Tree == quota.Tree && c.Group == q.Object.Metadata.Namespace {
							want += c.Request[resource.GPU]
						}
					}
				}
				if got := q.Reserved[resource.GPU]; got != want || got > q.Used[resource.GPU] {
					t.Fatalf("seed %d, step %d, quota %s/%s: %d reserved of %d used, want %d", seed, step, q.Object.Metadata.Namespace, q.Object.Metadata.Name, got, q.Used[resource.GPU], want)
				}
				seen[fmt.Sprint("reserved ", q.Reserved[resource.GPU] > 0, ", started ", q.Reserved[resource.GPU] < q.Used[resource.GPU])] = true
				shows := q.Show()
				if text, shown := shows.Status.Reserved[resource.GPU]; shown != (want > 0) || shown && text != resource.FormatAmount(resource.GPU, want) {
					t.Fatalf("the status has %v, want %d", shows.Status.Reserved, want)
				}
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("the worlds had only quotas with %v", seen)
	}
}
