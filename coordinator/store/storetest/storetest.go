// Package storetest is the contract of store.Store as tests. Every
// implementation runs it; what it does not check, no caller may rely on.
package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// patience bounds every wait; only a broken store uses it up.
const patience = time.Minute

// Run checks a store. open is called once; the store is closed at the end. It
// may hold other keys, but no leader. Run compacts it.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	s := open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if _, _, _, err := s.Get(context.Background(), record.Root+"x"); err == nil {
			t.Error("get after close: no error")
		}
	})
	cases := []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"a put is read back with its revisions", testPut},
		{"a compare guards all operations", testCompares},
		{"all operations of a transaction share one revision", testOneRevision},
		{"what changes nothing takes no revision", testNoChange},
		{"what no store takes is refused for certain", testRefusals},
		{"as many operations as the limit are taken", testLimit},
		{"a canceled call was not sent", testCanceled},
		{"ranges end at the prefix and may be cut", testRange},
		{"ranges are longer than a page", testPages},
		{"the past is readable", testPast},
		{"increments under compare are not lost", testIncrements},
		{"random transactions behave like a map", testModel},
		{"a watch sees whole revisions from the past on", testWatch},
		{"a watch shows what was there before", testWatchPrev},
		{"a watch ends with its context", testWatchEnds},
		{"revoking a lease deletes its keys at once", testRevoke},
		{"a lease that nobody keeps alive ends", testExpiry},
		{"leadership passes on in order with rising epochs", testElection},
		{"a leader whose key is deleted learns it", testDeposed},
		{"a candidate that gives up leaves nothing", testCandidateGivesUp},
		{"compacted history is refused with its floor", testCompaction},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			c.run(t, &fixture{s: s, ctx: ctx, root: record.Root + "storetest/" + rand.Text() + "/"})
		})
	}
}

// fixture is one case's own part of the store.
type fixture struct {
	s    store.Store
	ctx  context.Context // ends with the case's patience
	root string
}

func (f *fixture) key(name string) string { return f.root + name }

// must commits ops without condition and returns their revision.
func (f *fixture) must(t *testing.T, ops ...record.Op) resource.Revision {
	t.Helper()
	r, err := f.s.Txn(f.ctx, record.Txn{Then: ops})
	if err != nil || !r.Succeeded {
		t.Fatalf("transaction: %+v, %v", r, err)
	}
	return r.Revision
}

func (f *fixture) put(t *testing.T, name, value string) resource.Revision {
	t.Helper()
	return f.must(t, record.Put(f.key(name), []byte(value)))
}

// try runs a guarded put and reports whether its compares held.
func (f *fixture) try(t *testing.T, name string, compares ...record.Compare) bool {
	t.Helper()
	r, err := f.s.Txn(f.ctx, record.Txn{If: compares, Then: []record.Op{record.Put(f.key(name), []byte("tried"))}})
	if err != nil {
		t.Fatalf("transaction: %v", err)
	}
	return r.Succeeded
}

func (f *fixture) get(t *testing.T, name string) (record.KV, bool) {
	t.Helper()
	kv, found, _, err := f.s.Get(f.ctx, f.key(name))
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	return kv, found
}

// names ranges below root and returns the keys without it.
func (f *fixture) names(t *testing.T, prefix string, o store.RangeOptions) []string {
	t.Helper()
	kvs, _, err := f.s.Range(f.ctx, f.key(prefix), o)
	if err != nil {
		t.Fatalf("range: %v", err)
	}
	var names []string
	for _, kv := range kvs {
		names = append(names, kv.Key[len(f.root):])
	}
	return names
}

// next waits for a batch with events; progress is skipped.
func (f *fixture) next(t *testing.T, batches <-chan record.Batch) record.Batch {
	t.Helper()
	for {
		select {
		case b, open := <-batches:
			if !open {
				t.Fatal("the watch ended")
			}
			if b.Err != nil || len(b.Events) > 0 {
				return b
			}
		case <-f.ctx.Done():
			t.Fatal("no event within the case's time")
		}
	}
}

// describe writes a batch as text: "rev+1: put a=1, delete b".
func (f *fixture) describe(base resource.Revision, b record.Batch) string {
	text := fmt.Sprintf("+%d:", b.Revision-base)
	for _, e := range b.Events {
		name := e.KV.Key[len(f.root):]
		if e.Type == record.EventDelete {
			text += " delete " + name
		} else {
			text += fmt.Sprintf(" put %s=%s", name, e.KV.Value)
		}
		if e.Prev != nil {
			text += fmt.Sprintf(" (was %s)", e.Prev.Value)
		}
	}
	return text
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
