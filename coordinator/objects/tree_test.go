package objects_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/objects/objectstest"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// treesOf are the quota trees of a view.
func treesOf(t *testing.T, c *objects.Cache, at resource.Revision) []api.QuotaTree {
	t.Helper()
	trees, _, err := c.View(at, time.Time{}).Trees()
	if err != nil {
		t.Fatal(err)
	}
	return trees
}

// TestTheUseOfTreesFollowsFromTheKeys: a cache that has followed each change shows the
// same trees as one that sees the keys for the first time, whatever their history. A view
// that is read late shows its own moment.
func TestTheUseOfTreesFollowsFromTheKeys(t *testing.T) {
	borrowed, detached := false, false
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			world := objectstest.New(seed, "a", "a-b", "b")
			followed, kvs, now := objects.New(), map[string]record.KV{}, time.Unix(1, 0)
			type moment struct {
				view *objects.View
				want []api.QuotaTree
			}
			var late []moment
			for rev := resource.Revision(1); rev < 600; rev++ {
				for _, op := range world.Change() {
					followed.Touch(op.Key)
					if op.Delete {
						delete(kvs, op.Key)
						continue
					}
					kv := record.KV{Key: op.Key, Value: op.Value, ModRev: rev, CreateRev: rev}
					if before, there := kvs[op.Key]; there {
						kv.CreateRev = before.CreateRev
					}
					kvs[op.Key] = kv
				}
				if err := followed.Refresh(kvs, rev, now); err != nil {
					t.Fatal(err)
				}
				if rev%7 != 0 {
					continue
				}
				first := objects.New()
				for key := range kvs {
					first.Touch(key)
				}
				if err := first.Refresh(kvs, rev, now); err != nil {
					t.Fatal(err)
				}
				want := treesOf(t, first, rev)
				if rev%3 == 0 {
					late = append(late, moment{followed.View(rev, time.Time{}), want})
					continue
				}
				got := treesOf(t, followed, rev)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("revision %d (-at once +followed):\n%s", rev, diff)
				}
				if len(late) > 1 {
					trees, _, err := late[0].view.Trees()
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(late[0].want, trees); diff != "" {
						t.Fatalf("a view that was read at revision %d (-its moment +read):\n%s", rev, diff)
					}
					late = late[1:]
				}
				for _, tree := range got {
					detached = detached || len(tree.Status.Detached) > 0
					for _, n := range tree.Status.Nodes {
						borrowed = borrowed || len(n.Borrowed) > 0
					}
				}
			}
		})
	}
	if !borrowed || !detached {
		t.Errorf("some group borrows: %t, some unit is detached: %t; the world is too quiet for this test", borrowed, detached)
	}
}

// BenchmarkTrees computes the use of one tree by 10,000 units.
func BenchmarkTrees(b *testing.B) {
	c, kvs, now := objects.New(), map[string]record.KV{}, time.Unix(1, 0)
	put := func(rev resource.Revision, ops ...record.Op) {
		for _, op := range ops {
			kvs[op.Key] = record.KV{Key: op.Key, Value: op.Value, ModRev: rev, CreateRev: rev}
			c.Touch(op.Key)
		}
	}
	nodes := `"all":{"quota":{"nvidia.com/gpu":20000}}`
	for i := range 100 {
		nodes += fmt.Sprintf(`,"g%d":{"parent":"all","quota":{"nvidia.com/gpu":90}}`, i)
	}
	document := fmt.Appendf(nil, `{"metadata":{"name":"Org"},"spec":{"resourceNames":["nvidia.com/gpu"],"nodes":{%s}}}`, nodes)
	tree := record.QuotaKey{Kind: record.QuotaTrees, Name: "Org"}
	put(1, record.Put(tree.Key(), record.MustEncode(record.Quota{UID: "q", Name: "Org", Document: document})))
	for i := range 10_000 {
		put(resource.Revision(i+2), charged(i)...)
	}
	if err := c.Refresh(kvs, 10_002, now); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rev := resource.Revision(10_003 + i)
		put(rev, charged(i%10_000)...)
		if err := c.Refresh(kvs, rev, now); err != nil {
			b.Fatal(err)
		}
		if _, _, err := c.View(rev, now).Trees(); err != nil {
			b.Fatal(err)
		}
	}
}

// charged is an allocation that runs and is charged to one of 100 groups.
func charged(i int) []record.Op {
	u, tx := running(i)
	tx.Charges = append(tx.Charges, record.Charge{Tree: "Org", Group: fmt.Sprint("g", i%100), Request: resource.Vector{resource.GPU: 1000}})
	return []record.Op{record.Put(u.Path().Key(), record.MustEncode(u)), record.Put(record.TxKey(u.TxID), record.MustEncode(tx))}
}
