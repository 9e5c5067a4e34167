package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// following is a follower on a store whose watch can be ended, held back, and
// that can be put in the place of another.
type following struct {
	*Follower
	log bytes.Buffer
	end context.CancelFunc

	mu   sync.Mutex
	back *mem.Store
	held bool // new changes are not brought
	fail error
	errs chan error // ends the present watch
}

// followedStore is the store as the follower sees it.
type followedStore struct {
	store.Store
	f *following
}

func (s followedStore) now() (*mem.Store, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.f.back, s.f.fail
}

func (s followedStore) Get(ctx context.Context, key string) (record.KV, bool, resource.Revision, error) {
	back, err := s.now()
	if err != nil {
		return record.KV{}, false, 0, err
	}
	return back.Get(ctx, key)
}

func (s followedStore) Range(ctx context.Context, prefix string, o store.RangeOptions) ([]record.KV, resource.Revision, error) {
	back, err := s.now()
	if err != nil {
		return nil, 0, err
	}
	return back.Range(ctx, prefix, o)
}

func (s followedStore) Watch(ctx context.Context, prefix string, o store.WatchOptions) <-chan record.Batch {
	back, _ := s.now()
	out := make(chan record.Batch)
	in := back.Watch(ctx, prefix, o)
	go func() {
		defer close(out)
		for {
			var b record.Batch
			var open bool
			select {
			case b, open = <-in:
				s.f.mu.Lock()
				held := s.f.held
				s.f.mu.Unlock()
				if held && open {
					continue
				}
			case err := <-s.f.errs:
				b, open = record.Batch{Err: err}, true
			}
			if !open {
				return
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
			if b.Err != nil {
				return
			}
		}
	}()
	return out
}

func (f *following) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// options are those of a follower that nobody else needs.
func options(s store.Store, log *slog.Logger) Options {
	return Options{
		Store: s, Log: log, Check: 2500 * time.Millisecond, Leads: func() bool { return false }, Moved: func(resource.Revision) {}, Registered: func(News) {},
		Forget: func(_ context.Context, back *record.WentBackError) { s.Acknowledge(back) },
	}
}

func startFollowing(t *testing.T) *following {
	t.Helper()
	f := &following{back: mem.Open(mem.Options{}), errs: make(chan error)}
	f.Follower = New(options(followedStore{Store: struct{ store.Store }{}, f: f}, slog.New(slog.NewTextHandler(&f.log, nil))))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	f.end = func() { cancel(); <-done }
	synctest.Wait()
	return f
}

// putUnit writes a waiting allocation, and returns the revision.
func putUnit(t *testing.T, s store.Store, name string) resource.Revision {
	t.Helper()
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: "default", Name: name, Tenant: "default", Queue: api.DefaultQueue,
		Phase: string(api.Pending), Members: 1, Document: fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, name),
	}
	r, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(unit.Path().Key(), record.MustEncode(unit))}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Revision
}

// names are the allocations that a fresh read shows.
func (f *following) names(ctx context.Context) (string, error) {
	return Read(ctx, f.Follower, func(i *objects.View) (string, *api.Status) {
		names := ""
		for _, name := range []string{"a", "b", "c"} {
			if _, found := i.Member("default/" + name); found {
				names += name
			}
		}
		return names, nil
	})
}

func (f *following) mustShow(t *testing.T, want string) {
	t.Helper()
	if got, err := f.names(t.Context()); got != want || err != nil {
		t.Errorf("it shows %q, %v; want %q\n%s", got, err, want, f.log.String())
	}
}

func TestAReadSeesWhatWasAcknowledgedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFollowing(t)
		defer f.end()
		f.mustShow(t, "")
		putUnit(t, f.back, "a")
		f.mustShow(t, "a") // without a moment in between
		putUnit(t, f.back, "b")
		f.mustShow(t, "ab")
	})
}

func TestAReadThatWouldBeOldIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFollowing(t)
		defer f.end()
		f.with(func() { f.held = true })
		putUnit(t, f.back, "a")
		start := time.Now()
		if _, err := f.names(t.Context()); !errors.Is(err, ErrBehind) || time.Since(start) > 2*CatchUp {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		// The watch brings nothing though there is something: all is loaded anew.
		<-time.NewTimer(3 * f.check).C
		f.mustShow(t, "a")
		f.with(func() { f.fail = errors.New("out of reach") })
		if _, err := f.names(t.Context()); !errors.Is(err, ErrBehind) {
			t.Errorf("with the store away: %v", err)
		}
	})
}

func TestACompactedWatchIsLoadedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFollowing(t)
		defer f.end()
		f.with(func() { f.held = true })
		rev := putUnit(t, f.back, "a")
		putUnit(t, f.back, "b")
		synctest.Wait()
		f.with(func() { f.held = false })
		f.errs <- &record.CompactedError{Asked: rev, Floor: rev + 1}
		synctest.Wait()
		<-time.NewTimer(2 * firstReload).C
		f.mustShow(t, "ab")
		if !strings.Contains(f.log.String(), "has been compacted") {
			t.Errorf("the log says nothing of it:\n%s", f.log.String())
		}
	})
}

func TestAStoreThatWentBackIsNoticedAndLoaded(t *testing.T) {
	for name, notice := range map[string]func(*testing.T, *following){
		"by a read": func(t *testing.T, f *following) {
			if _, err := f.names(t.Context()); !errors.Is(err, ErrBehind) {
				t.Errorf("the first read: %v", err)
			}
			<-time.NewTimer(2 * firstReload).C
		},
		"by itself": func(_ *testing.T, f *following) { <-time.NewTimer(2 * f.check).C },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startFollowing(t)
				defer f.end()
				backup := mem.Open(mem.Options{})
				putUnit(t, backup, "c")
				for _, name := range []string{"a", "b", "c"} {
					putUnit(t, f.back, name)
				}
				f.mustShow(t, "abc")
				f.with(func() { f.back = backup })
				notice(t, f)
				f.mustShow(t, "c")
				if !strings.Contains(f.log.String(), "store_went_back") {
					t.Errorf("the log says nothing of it:\n%s", f.log.String())
				}
				if err := backup.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWhatCannotBeShownIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFollowing(t)
		defer f.end()
		key := record.UnitPath{Namespace: "default", Kind: record.AllocUnit, Name: "a"}.Key()
		if _, err := f.back.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(key, []byte("{"))}}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.names(t.Context()); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v, want an error that names %s", err, key)
		}
	})
}

func TestASnapshotIsWhatTheStoreHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFollowing(t)
		defer f.end()
		putUnit(t, f.back, "b")
		rev := putUnit(t, f.back, "a")
		s, ok := f.Snapshot(t.Context(), rev)
		if !ok || s.Revision != rev {
			t.Fatalf("%t at revision %d, want one at %d", ok, s.Revision, rev)
		}
		for _, prefix := range []string{record.Root, record.UnitsPrefix, record.TxPrefix, record.UnitsPrefix + "default/alloc/b/0"} {
			want, _, err := f.back.Range(t.Context(), prefix, store.RangeOptions{})
			got, _, _ := s.Range(t.Context(), prefix, store.RangeOptions{})
			if fmt.Sprint(want) != fmt.Sprint(got) || err != nil {
				t.Errorf("%s: %v, want %v, %v", prefix, got, want, err)
			}
		}
		f.with(func() { f.held = true })
		if _, ok := f.Snapshot(t.Context(), rev+1); ok { // model: mutant SUM_BEFORE_ELECTION
			t.Error("a snapshot older than was asked for")
		}
	})
}

// Read shows something that is not older than the call. show runs outside of
// every lock.
func Read[T any](ctx context.Context, f *Follower, show func(v *objects.View) (T, *api.Status)) (T, error) {
	var none T
	view, err := f.Fresh(ctx)
	if err != nil {
		return none, err
	}
	got, status := show(view)
	if status != nil {
		return none, status
	}
	return got, nil
}
