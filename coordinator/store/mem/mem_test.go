package mem_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return mem.Open(mem.Options{}) })
}

func TestHooks(t *testing.T) {
	ctx := context.Background()
	unknown := fmt.Errorf("answer lost: %w", record.ErrUnknownOutcome)
	put := record.Txn{Then: []record.Op{record.Put("/registry/a", []byte("x"))}}
	cases := map[string]struct {
		o         mem.Options
		wantFound bool
	}{
		"a transaction lost on its way is not done":  {mem.Options{BeforeCommit: func(record.Txn) error { return unknown }}, false},
		"a transaction whose answer is lost is done": {mem.Options{AfterCommit: func(record.Txn, record.TxnResult) error { return unknown }}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := mem.Open(c.o)
			defer func() { _ = s.Close() }()
			if _, err := s.Txn(ctx, put); !errors.Is(err, record.ErrUnknownOutcome) {
				t.Errorf("transaction: %v", err)
			}
			if _, found, _, _ := s.Get(ctx, "/registry/a"); found != c.wantFound {
				t.Errorf("found %v, want %v", found, c.wantFound)
			}
		})
	}
}

func TestLeaseRunsOnTheBubblesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := mem.Open(mem.Options{})
		defer func() { _ = s.Close() }()
		l, err := s.Grant(ctx, 24*time.Hour+time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if want := 24*time.Hour + time.Second; l.TTL != want {
			t.Errorf("granted %v, want whole seconds %v", l.TTL, want)
		}
		if _, err := s.Txn(ctx, record.Txn{Then: []record.Op{record.PutLeased("/registry/a", nil, l.ID)}}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		b := <-s.Watch(ctx, "/registry/a", store.WatchOptions{From: 3})
		if got := time.Since(start); got != l.TTL || b.Events[0].Type != record.EventDelete {
			t.Errorf("after %v: %+v", got, b)
		}
	})
}

// TestHalfTheLease: a leader cut from the store stops acting at half its lease,
// well before the store lets another one in.
func TestHalfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := mem.Open(mem.Options{})
		defer func() { _ = s.Close() }()
		cut := &deaf{Store: s}
		const ttl = 10 * time.Second
		first, err := store.NewCandidate(cut, record.LeaderAddress{ID: "first"}, ttl).Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		won := make(chan *store.Leadership)
		go func() {
			second, err := store.NewCandidate(s, record.LeaderAddress{ID: "second"}, ttl).Campaign(ctx)
			if err != nil {
				t.Error(err)
			}
			won <- second
		}()
		<-time.After(time.Minute) // the bubble's: renewals keep the first in office
		select {
		case <-first.Done():
			t.Fatalf("lost while the store answered: %v", first.Err())
		case <-won:
			t.Fatal("a second leader was elected")
		default:
		}
		cut.deaf.Store(true)
		start := time.Now()
		<-first.Done()
		stopped := time.Since(start)
		second := <-won
		elected := time.Since(start)
		if stopped > ttl/2 || elected < ttl*3/4 || elected > ttl || first.Err() == nil || second.Epoch <= first.Epoch {
			t.Errorf("stopped after %v (%v), next elected after %v with epoch %d after %d",
				stopped, first.Err(), elected, second.Epoch, first.Epoch)
		}
		if r, err := s.Txn(ctx, record.Txn{If: []record.Compare{first.Held()}}); err != nil || r.Succeeded {
			t.Errorf("transaction of the old epoch: %+v, %v", r, err)
		}
		if err := second.Resign(ctx); err != nil {
			t.Error(err)
		}
	})
}

// deaf is a store whose renewals stop getting through.
type deaf struct {
	store.Store
	deaf atomic.Bool
}

func (d *deaf) KeepAlive(ctx context.Context, id record.LeaseID) error {
	if d.deaf.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return d.Store.KeepAlive(ctx, id)
}

func BenchmarkTxnCommit(b *testing.B) {
	storetest.BenchmarkTxnCommit(b, mem.Open(mem.Options{}))
}

func TestRestored(t *testing.T) {
	s := mem.Open(mem.Options{})
	var kept mem.Backup
	storetest.RunRestored(t, s, func() { kept = s.Backup() }, func() { s.Restore(kept) }, s.Connect(mem.Options{}))
}

// TestOneClientSawTheLoss: who has seen nothing of what is lost goes on.
func TestOneClientSawTheLoss(t *testing.T) {
	ctx := context.Background()
	writer := mem.Open(mem.Options{})
	defer func() { _ = writer.Close() }()
	reader := writer.Connect(mem.Options{})
	put := record.Txn{Then: []record.Op{record.Put("/registry/a", []byte("x"))}}
	if _, err := writer.Txn(ctx, put); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := reader.Get(ctx, "/registry/a"); err != nil {
		t.Fatal(err)
	}
	kept := writer.Backup()
	if _, err := writer.Txn(ctx, put); err != nil {
		t.Fatal(err)
	}
	writer.Restore(kept)
	if _, _, _, err := writer.Get(ctx, "/registry/a"); !errors.Is(err, record.ErrWentBack) {
		t.Errorf("the writer: %v", err)
	}
	if _, _, rev, err := reader.Get(ctx, "/registry/a"); err != nil || rev != 2 {
		t.Errorf("the reader: revision %d, %v", rev, err)
	}
}

func TestFull(t *testing.T) {
	s := mem.Open(mem.Options{})
	storetest.RunFull(t, s, func() { s.SetFull(true) }, func() { s.SetFull(false) })
}
