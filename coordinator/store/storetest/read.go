package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

func testRange(t *testing.T, f *fixture) {
	for _, name := range []string{"a/1", "a/2", "a/10", "a", "a0", "b/1"} {
		f.put(t, name, name)
	}
	cases := map[string]struct {
		prefix string
		o      store.RangeOptions
		want   []string
	}{
		"keys ascend by bytes":                  {"a/", store.RangeOptions{}, []string{"a/1", "a/10", "a/2"}},
		"a prefix is not a folder":              {"a", store.RangeOptions{}, []string{"a", "a/1", "a/10", "a/2", "a0"}},
		"a limit cuts":                          {"a", store.RangeOptions{Limit: 2}, []string{"a", "a/1"}},
		"a limit above the number":              {"b", store.RangeOptions{Limit: 2}, []string{"b/1"}},
		"it goes on after a key":                {"a", store.RangeOptions{StartAfter: f.key("a/1")}, []string{"a/10", "a/2", "a0"}},
		"it goes on after a key that is absent": {"a", store.RangeOptions{StartAfter: f.key("a/11"), Limit: 1}, []string{"a/2"}},
		"after the last key there is nothing":   {"a", store.RangeOptions{StartAfter: f.key("a0")}, nil},
		"after the prefix there is nothing":     {"a", store.RangeOptions{StartAfter: f.key("c")}, nil},
		"before the prefix there is nothing":    {"b", store.RangeOptions{StartAfter: f.key("a")}, []string{"b/1"}},
		"nothing has the prefix":                {"c", store.RangeOptions{}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { diff(t, "keys", c.want, f.names(t, c.prefix, c.o)) })
	}
	rev := f.put(t, "z", "")
	_, at, err := f.s.Range(f.ctx, f.root, store.RangeOptions{})
	if err != nil || at != rev {
		t.Errorf("read at revision %d, %v; want %d", at, err, rev)
	}
}

func testPages(t *testing.T, f *fixture) {
	const n = 2500
	var ops []record.Op
	var want []string
	for i := range n {
		name := fmt.Sprintf("%05d", i)
		want = append(want, name)
		if ops = append(ops, record.Put(f.key(name), nil)); len(ops) == min(f.s.MaxTxnOps(), 500) {
			f.must(t, ops...)
			ops = nil
		}
	}
	if len(ops) > 0 {
		f.must(t, ops...)
	}
	diff(t, "all keys", want, f.names(t, "", store.RangeOptions{}))
	diff(t, "keys up to a limit", want[:1700], f.names(t, "", store.RangeOptions{Limit: 1700}))
	diff(t, "keys after one", want[1001:], f.names(t, "", store.RangeOptions{StartAfter: f.key(want[1000])}))
}

func testPast(t *testing.T, f *fixture) {
	first := f.put(t, "a", "1")
	second := f.must(t, record.Put(f.key("b"), []byte("2")), record.Delete(f.key("a")))
	f.put(t, "b", "3")
	diff(t, "first", []string{"a"}, f.names(t, "", store.RangeOptions{AtRevision: first}))
	diff(t, "second", []string{"b"}, f.names(t, "", store.RangeOptions{AtRevision: second}))
	kvs, at, err := f.s.Range(f.ctx, f.root, store.RangeOptions{AtRevision: second})
	if err != nil || at != second || string(kvs[0].Value) != "2" {
		t.Errorf("at revision %d: %+v at %d, %v", second, kvs, at, err)
	}
	_, _, err = f.s.Range(f.ctx, f.root, store.RangeOptions{AtRevision: second + 1_000_000})
	if !errors.Is(err, store.ErrFutureRevision) {
		t.Errorf("reading the future: %v", err)
	}
}

func testWatch(t *testing.T, f *fixture) {
	base := f.put(t, "x", "0")
	f.put(t, "a", "1")
	f.must(t, record.Put(f.key("a"), []byte("2")), record.Put(f.key("b"), []byte("3")), record.Put(record.Root+"elsewhere", nil))
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	batches := f.s.Watch(ctx, f.root, store.WatchOptions{From: base + 1})
	diff(t, "past", "+1: put a=1", f.describe(base, f.next(t, batches)))
	diff(t, "a revision of two keys", "+2: put a=2 put b=3", f.describe(base, f.next(t, batches)))
	f.must(t, record.Delete(record.Root+"elsewhere"))
	f.must(t, record.Delete(f.key("a")))
	b := f.next(t, batches)
	diff(t, "a delete, after a revision that does not concern it", "+4: delete a", f.describe(base, b))
	diff(t, "the delete's key", record.KV{Key: f.key("a"), ModRev: base + 4}, b.Events[0].KV)
	narrow := f.s.Watch(ctx, f.key("b"), store.WatchOptions{From: base})
	diff(t, "one key", "+2: put b=3", f.describe(base, f.next(t, narrow)))
	future := f.s.Watch(ctx, f.root, store.WatchOptions{From: base + 6})
	f.put(t, "a", "5")
	f.put(t, "a", "6")
	diff(t, "not before its start", "+6: put a=6", f.describe(base, f.next(t, future)))
	diff(t, "still following", "+5: put a=5", f.describe(base, f.next(t, batches)))
	if b := <-f.s.Watch(ctx, f.root, store.WatchOptions{}); b.Err == nil {
		t.Errorf("a watch from revision 0: %+v", b)
	}
}

func testWatchPrev(t *testing.T, f *fixture) {
	base := f.put(t, "a", "1")
	f.put(t, "a", "2")
	f.must(t, record.Delete(f.key("a")))
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	batches := f.s.Watch(ctx, f.root, store.WatchOptions{From: base, Prev: true})
	diff(t, "created", "+0: put a=1", f.describe(base, f.next(t, batches)))
	b := f.next(t, batches)
	diff(t, "changed", "+1: put a=2 (was 1)", f.describe(base, b))
	diff(t, "what was there", &record.KV{Key: f.key("a"), Value: []byte("1"), CreateRev: base, ModRev: base}, b.Events[0].Prev)
	diff(t, "deleted", "+2: delete a (was 2)", f.describe(base, f.next(t, batches)))
}

func testWatchEnds(t *testing.T, f *fixture) {
	rev := f.put(t, "a", "1")
	for _, read := range []bool{true, false} {
		ctx, cancel := context.WithCancel(f.ctx)
		batches := f.s.Watch(ctx, f.root, store.WatchOptions{From: rev})
		if read {
			f.next(t, batches)
		}
		cancel()
		for b := range batches { // ends, or the test runs into its deadline
			if b.Err != nil {
				t.Errorf("a canceled watch reports %v", b.Err)
			}
		}
	}
}

func testCompaction(t *testing.T, f *fixture) {
	old := f.put(t, "a", "1")
	created := f.put(t, "b", "1")
	f.put(t, "idle", "early")
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	idle := f.s.Watch(ctx, f.key("idle"), store.WatchOptions{From: old})
	f.next(t, idle)
	f.put(t, "gone", "1")
	f.must(t, record.Delete(f.key("gone")))
	floor := f.put(t, "a", "2")
	last := f.put(t, "a", "3")
	if err := f.s.Compact(f.ctx, floor); err != nil {
		t.Fatalf("compact: %v", err)
	}
	wantFloor := func(what string, err error) {
		t.Helper()
		var compacted *record.CompactedError
		if !errors.As(err, &compacted) || compacted.Floor != floor {
			t.Errorf("%s: %v, want a refusal with floor %d", what, err, floor)
		}
	}
	_, _, err := f.s.Range(f.ctx, f.root, store.RangeOptions{AtRevision: old})
	wantFloor("range", err)
	wantFloor("watch", f.next(t, f.s.Watch(ctx, f.root, store.WatchOptions{From: old})).Err)
	wantFloor("compact again", f.s.Compact(f.ctx, floor))
	if err := f.s.Compact(f.ctx, last+1_000_000); !errors.Is(err, store.ErrFutureRevision) {
		t.Errorf("compact the future: %v", err)
	}
	diff(t, "keys at the floor", []string{"a", "b", "idle"}, f.names(t, "", store.RangeOptions{AtRevision: floor}))
	diff(t, "watch from the floor", last,
		f.next(t, f.s.Watch(ctx, f.root, store.WatchOptions{From: floor + 1})).Revision)
	kv, _ := f.get(t, "b")
	diff(t, "a key that is older than the floor", created, kv.ModRev)
	// A watch that had nothing to deliver is not behind.
	f.put(t, "idle", "now")
	if b := f.next(t, idle); b.Err != nil || string(b.Events[0].KV.Value) != "now" {
		t.Errorf("idle watch after the compaction: %+v", b)
	}
}
