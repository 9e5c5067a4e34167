package follow

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestTheEdgesOfThePast: changes of exactly the greatest age and size stay in the store, and
// older or more changes go.
func TestTheEdgesOfThePast(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		age   time.Duration // of the sample at revision 50
		bytes int64         // behind the sample
		want  resource.Revision
	}{
		"the greatest age":  {mostPastAge, 0, 40},
		"beyond the age":    {mostPastAge + time.Nanosecond, 0, 50},
		"the greatest size": {0, mostPastBytes, 40},
		"a byte more":       {0, mostPastBytes + 1, 50},
	} {
		t.Run(name, func(t *testing.T) {
			p := past{position: 40, bytes: c.bytes, samples: []pastSample{{at: now.Add(-c.age), revision: 50}}}
			if got := p.floor(60, now); got != c.want {
				t.Errorf("compacted up to %d, want %d", got, c.want)
			}
			if p.position = 60; p.floor(60, now) != 60 {
				t.Error("the compaction waits for a position that is reached")
			}
		})
	}
}

// TestTheChangesAreKeptWhileAWatchNeedsThem: and for the whole time behind the last watch.
// A second Close has no effect, and a further watch begins anew.
func TestTheChangesAreKeptWhileAWatchNeedsThem(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	f := newFeeds()
	f.records = true
	first, second := &Watch{kind: objects.Jobs, namespace: "ml"}, &Watch{kind: objects.Jobs, namespace: "ml"}
	f.add(first)
	f.add(second)
	f.remove(first, now)
	f.remove(first, now) // again
	if late := now.Add(24 * time.Hour); f.open != 1 || f.idle(late) {
		t.Errorf("%d watches are open, want 1; idle: %v", f.open, f.idle(late))
	}
	f.remove(second, now)
	if f.open != 0 || f.idle(now.Add(keepHistory)) || !f.idle(now.Add(keepHistory+1)) {
		t.Errorf("%d watches are open; idle at the end of the time: %v, behind it: %v", f.open, f.idle(now.Add(keepHistory)), f.idle(now.Add(keepHistory+1)))
	}
	if len(f.watches) != 0 {
		t.Errorf("%d feeds without a watch", len(f.watches))
	}
	if f.add(first); f.idle(now.Add(24 * time.Hour)) {
		t.Error("the changes go while a watch is open")
	}
}

// A change wakes the watches of the namespace and the watches of all namespaces, and no
// watch of another namespace or kind.
func TestAChangeWakesItsWatches(t *testing.T) {
	u := record.Unit{
		UID: "u", Kind: record.AllocUnit, Namespace: "ml", Name: "a", Tenant: "t", Phase: "Pending", Members: 1, Created: "2000-01-01T00:00:00Z",
		Document: []byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`),
	}
	key := u.Path().Key()
	cache := objects.New()
	cache.Record(1, objects.Limits{Events: 10, Bytes: 1 << 20})
	cache.Touch(key)
	kvs := map[string]record.KV{key: {Key: key, Value: record.MustEncode(u), CreateRev: 2, ModRev: 2}}
	if err := cache.Refresh(kvs, 2, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	f := newFeeds()
	watches := map[feed]*Watch{}
	for _, on := range []feed{{objects.Allocations, "ml"}, {objects.Allocations, ""}, {objects.Allocations, "speech"}, {objects.Jobs, ""}} {
		watches[on] = &Watch{kind: on.kind, namespace: on.namespace, wake: make(chan struct{}, 1)}
		f.add(watches[on])
	}
	f.publish(cache, 2)
	for on, w := range watches {
		if woken := len(w.wake) > 0; woken != (on.kind == objects.Allocations && on.namespace != "speech") {
			t.Errorf("the watch of %v %q is woken: %v", on.kind, on.namespace, woken)
		}
	}
}

// TestTheEdgesOfKeptViews: the bound of views, and of the time of each.
func TestTheEdgesOfKeptViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cache := &Follower{}, objects.New()
		view := func(at resource.Revision) *objects.View { return cache.View(at, time.Now()) }
		for at := range resource.Revision(mostKept) {
			f.Keep(view(1 + at))
		}
		if f.KeptView(1) == nil {
			t.Errorf("the first of %d views is gone", mostKept)
		}
		f.Keep(view(1)) // asked for again: the second is the oldest now
		if f.Keep(view(mostKept + 1)); f.KeptView(1) == nil || f.KeptView(2) != nil || len(f.kept) != mostKept {
			t.Errorf("%d views are kept, want the %d newest", len(f.kept), mostKept)
		}
		time.Sleep(keptFor)
		if f.dropKept(time.Now()); len(f.kept) != mostKept {
			t.Errorf("%d views are left at the end of their time, want all", len(f.kept))
		}
		f.Keep(view(3))
		time.Sleep(1)
		if f.dropKept(time.Now()); len(f.kept) != 1 || f.KeptView(3) == nil {
			t.Errorf("%d views are left behind their time, want the one in use", len(f.kept))
		}
		if f.Keep(view(2)); f.KeptView(2) == nil {
			t.Error("there is no room for a view again")
		}
	})
}
