package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

func newFixture(t *testing.T, s store.Store) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	t.Cleanup(func() { _ = s.Close() })
	return &fixture{s: s, ctx: ctx, root: record.Root + "storetest/" + rand.Text() + "/"}
}

// renew lets the case's time begin anew. The time that a cluster of a test takes to
// be copied or restored is not the store's, and is a minute on a busy machine.
func (f *fixture) renew(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	f.ctx = ctx
}

// RunRestored checks what a store does that is put back to an earlier state.
// backup keeps the store's present content, and restore puts it back; s stays
// open over both. Others may have written in between, but s saw it not.
func RunRestored(t *testing.T, s store.Store, backup, restore func(), others store.KVStore) {
	f := newFixture(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, overtaken := range map[string]bool{
		"the loss shows in the revision":          false,
		"the restored store has grown beyond it":  true,
		"and once more: what was said is no news": false,
	} {
		t.Run(name, func(t *testing.T) {
			f.renew(t)
			f.put(t, "kept", "1")
			backup()
			f.renew(t)
			lost := f.must(t, record.Put(f.key("lost"), []byte("x")))
			watched := f.s.Watch(ctx, f.root, store.WatchOptions{From: lost})
			f.next(t, watched)
			future := f.s.Watch(ctx, f.root, store.WatchOptions{From: lost + 1000})
			lease := f.grant(t, time.Hour)
			restore()
			f.renew(t)
			for rev := lost; overtaken && rev <= lost+2; {
				r, err := others.Txn(f.ctx, record.Txn{Then: []record.Op{record.Put(record.Root+"storetest/other", []byte(rand.Text()))}})
				if err != nil {
					t.Fatalf("another client: %v", err)
				}
				rev = r.Revision
			}

			var back *record.WentBackError
			wentBack(t, "the watch", f.next(t, watched).Err, &back)
			if back.Had < lost || !overtaken && back.Has >= lost {
				t.Errorf("%+v, want the loss of revision %d", *back, lost)
			}
			if _, open := <-watched; open {
				t.Error("the watch goes on")
			}
			_, _, _, err := f.s.Get(f.ctx, f.key("kept"))
			wentBack(t, "get", err)
			_, _, err = f.s.Range(f.ctx, f.root, store.RangeOptions{})
			wentBack(t, "range", err)
			_, err = f.s.Txn(f.ctx, record.Txn{Then: []record.Op{record.Put(f.key("refused"), nil)}})
			wentBack(t, "transaction", err)
			if errors.Is(err, record.ErrUnknownOutcome) {
				t.Errorf("a transaction that was not sent: %v", err)
			}
			_, err = f.s.Grant(f.ctx, time.Minute)
			wentBack(t, "grant", err)
			wentBack(t, "keep alive", f.s.KeepAlive(f.ctx, lease.ID))
			wentBack(t, "a watch of the future", f.next(t, future).Err)
			wentBack(t, "a new watch", f.next(t, f.s.Watch(ctx, f.root, store.WatchOptions{From: 1})).Err)

			f.s.Acknowledge(&record.WentBackError{Had: back.Had, Has: back.Has})
			if _, _, _, err := f.s.Get(f.ctx, f.key("kept")); !errors.Is(err, record.ErrWentBack) {
				t.Errorf("another error of the same text was acknowledged: get: %v", err)
			}
			f.s.Acknowledge(back)
			diff(t, "keys", []string{"kept"}, f.names(t, "", store.RangeOptions{}))
			next := f.must(t, record.Put(f.key("new"), []byte("1")))
			diff(t, "a new watch", next, f.next(t, f.s.Watch(ctx, f.root, store.WatchOptions{From: next})).Revision)
			f.s.Acknowledge(back) // of the past: changes nothing
			f.must(t, record.Delete(f.key("new")))
		})
	}
}

func wentBack(t *testing.T, what string, err error, back ...**record.WentBackError) {
	t.Helper()
	var found *record.WentBackError
	if !errors.As(err, &found) || !errors.Is(err, record.ErrWentBack) {
		t.Fatalf("%s: %v, want to hear that the store went back", what, err)
	}
	for _, b := range back {
		*b = found
	}
}

// RunFull checks what a store does that is out of space. full makes it so, and
// free ends it.
func RunFull(t *testing.T, s store.Store, full, free func()) {
	f := newFixture(t, s)
	f.put(t, "a", "1")
	f.put(t, "b", "1")
	lease := f.grant(t, time.Hour)
	watched := f.s.Watch(f.ctx, f.key("b"), store.WatchOptions{From: 1})
	f.next(t, watched)
	full()
	_, err := f.s.Txn(f.ctx, record.Txn{Then: []record.Op{record.Put(f.key("a"), []byte("2")), record.Delete(f.key("b"))}})
	if !errors.Is(err, record.ErrNoSpace) || errors.Is(err, record.ErrUnknownOutcome) {
		t.Errorf("a transaction with a put: %v, want a definite refusal", err)
	}
	refused := record.Txn{If: []record.Compare{record.Absent(f.key("a"))}, Then: []record.Op{record.Put(f.key("a"), nil)}}
	if _, err := f.s.Txn(f.ctx, refused); !errors.Is(err, record.ErrNoSpace) {
		t.Errorf("a transaction with a put and a compare that does not hold: %v, want a definite refusal", err)
	}
	if _, err := f.s.Grant(f.ctx, time.Minute); !errors.Is(err, record.ErrNoSpace) {
		t.Errorf("grant: %v", err)
	}
	if err := f.s.KeepAlive(f.ctx, lease.ID); err != nil {
		t.Errorf("keep alive: %v", err)
	}
	kv, found := f.get(t, "a")
	diff(t, "what was there", "1 true", string(kv.Value)+" "+map[bool]string{true: "true"}[found])
	gone := f.must(t, record.Delete(f.key("b")))
	diff(t, "the delete's revision", gone, f.next(t, watched).Revision)
	free()
	f.put(t, "a", "3")
	f.grant(t, time.Minute)
}
