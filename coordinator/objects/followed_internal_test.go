package objects

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/objects/objectstest"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// everything is all objects of a view with figures, and the queue; bases is all objects without
// figures.
func everything(v *View) map[string]string {
	all := map[string]string{}
	for k := range Events {
		for i := range v.After(k, "", Name{}) {
			all[fmt.Sprint(i.Name)] = string(Encode(i.Object()))
		}
	}
	waiting, first := v.Queue(1 << 20)
	all["the queue"] = fmt.Sprint(waiting, first, v.lines.Len())
	return all
}

func bases(v *View) map[Name]string {
	all := map[Name]string{}
	for k := range Events {
		for i := range v.After(k, "", Name{}) {
			all[i.Name] = string(Encode(i.entry.base()))
		}
	}
	return all
}

// write applies a transaction to keys.
func write(c *Cache, kvs map[string]record.KV, rev resource.Revision, ops ...record.Op) {
	for _, op := range ops {
		c.Touch(op.Key)
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
}

// atOnce is a new cache after a refresh with all keys.
func atOnce(t *testing.T, kvs map[string]record.KV, rev resource.Revision, now time.Time) *Cache {
	t.Helper()
	c := New()
	for key := range kvs {
		c.Touch(key)
	}
	if err := c.Refresh(kvs, rev, now); err != nil {
		t.Fatal(err)
	}
	return c
}

// replay applies the events of a revision to the objects of a reader.
func replay(t *testing.T, c *Cache, has map[Name]string, rev resource.Revision, now time.Time) {
	t.Helper()
	for k := range Events {
		from, kept := c.History().Since(k, "", AllOf(rev-1))
		events, _, behind, more := c.History().Next(from, 1<<20, c.View(rev, now))
		if !kept || !more || behind != AllOf(rev) {
			t.Fatalf("revision %d: the events of %s are lost, or end at %s", rev, k, behind)
		}
		for i, e := range events {
			was, had := has[e.Name]
			switch {
			case e.ID.Revision != rev || i > 0 && events[i-1].ID.Compare(e.ID) >= 0:
				t.Fatalf("revision %d: event %d of %s has the id %s", rev, i, k, e.ID)
			case had != (e.Type != Added) || had && string(Encode(e.Before)) != was:
				t.Fatalf("revision %d: %v is %s, before %s, and the reader has %s", rev, e.Name, e.Type, Encode(e.Before), was)
			case e.Type == Deleted:
				delete(has, e.Name)
			default:
				has[e.Name] = string(Encode(e.after.base()))
			}
		}
	}
}

// TestEveryObjectFollowsFromTheKeys: a cache after a refresh for each change shows the same objects
// of every kind as a new cache; the events of the history lead from a revision to the next; and a
// view never changes.
func TestEveryObjectFollowsFromTheKeys(t *testing.T) {
	for seed := range uint64(2) {
		world := objectstest.New(100+seed, "a", "a-b", "b")
		followed, kvs, now := New(), map[string]record.KV{}, time.Unix(1, 0)
		followed.Record(0, Limits{1 << 20, 1 << 40})
		has := bases(followed.View(0, now))
		early, wantEarly := followed.View(0, now), map[string]string(nil)
		for rev := resource.Revision(1); rev < 320; rev++ {
			ops := world.Change()
			write(followed, kvs, rev, ops...)
			if err := followed.Refresh(kvs, rev, now); err != nil {
				t.Fatal(err)
			}
			replay(t, followed, has, rev, now)
			moves := strings.HasPrefix(ops[0].Key, record.QuotaPrefix+"seats/") // such a key makes no object stale
			if rev%11 != 0 && !moves {
				continue
			}
			v := followed.View(rev, now)
			got := everything(v)
			if diff := cmp.Diff(everything(atOnce(t, kvs, rev, now).View(rev, now)), got); diff != "" {
				t.Fatalf("seed %d, revision %d (-at once +followed):\n%s", seed, rev, diff)
			}
			if diff := cmp.Diff(bases(v), has); diff != "" {
				t.Fatalf("seed %d, revision %d (-shown +by the events):\n%s", seed, rev, diff)
			}
			if wantEarly != nil && !maps.Equal(wantEarly, everything(early)) {
				t.Fatalf("seed %d, revision %d: a view of an earlier revision has changed:\n%s", seed, rev, cmp.Diff(wantEarly, everything(early)))
			}
			early, wantEarly = v, got
		}
		for key := range kvs { // no object outlives the keys
			write(followed, kvs, 320, record.Delete(key))
		}
		if err := followed.Refresh(kvs, 320, now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(everything(New().View(320, now)), everything(followed.View(320, now))); diff != "" {
			t.Errorf("seed %d, without keys (-empty +followed):\n%s", seed, diff)
		}
		for what, n := range map[string]int{
			"nodes": len(followed.nodes), "units": len(followed.units), "jobs": len(followed.jobs), "members": len(followed.members), "transactions": len(followed.live),
			"namespaces in use": len(followed.counts.used), "groups": len(followed.gangs), "addresses": len(followed.addresses), "queues": len(followed.queues.members),
			"charged units": followed.trees.charged.Len(), "seats": followed.trees.seats.Len(), "stale objects": len(followed.stale), "touched keys": len(followed.touched),
			"known records": len(followed.known), "declarations": len(followed.resources.declared),
		} {
			if n != 0 {
				t.Errorf("seed %d: without keys %d %s are left", seed, n, what)
			}
		}
	}
}
