package store_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
)

// stuck is a store whose renewals take a while, whatever their deadline: so a
// process sees it that does not run in between.
type stuck struct {
	store.Store
	renewal atomic.Int64 // ns
}

func (s *stuck) KeepAlive(ctx context.Context, id record.LeaseID) error {
	if d := time.Duration(s.renewal.Load()); d > 0 {
		<-time.NewTimer(d).C
	}
	return s.Store.KeepAlive(context.WithoutCancel(ctx), id)
}

func lead(t *testing.T, s store.Store, id string) *store.Leadership {
	t.Helper()
	l, err := store.NewCandidate(s, record.LeaderAddress{ID: id}, 10*time.Second).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestATermHoldsForHalfItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{Store: mem.Open(mem.Options{})}
		l := lead(t, s, "a")
		wait := func(d time.Duration) { <-time.NewTimer(d).C }
		wait(time.Minute)
		if !l.Holds() || l.Err() != nil {
			t.Fatalf("a term that is renewed: holds %t, %v", l.Holds(), l.Err())
		}
		s.renewal.Store(int64(time.Minute)) // the process stands still
		wait(6 * time.Second)
		if l.Holds() {
			t.Error("it holds after more than half its lease")
		}
		select {
		case <-l.Done():
			t.Error("it has noticed by itself: this test shows nothing")
		default:
		}
		wait(time.Minute)
		select {
		case <-l.Done():
		default:
			t.Error("a renewal that was answered too late has brought it back")
		}
		if l.Holds() || !strings.Contains(l.Err().Error(), "not renewed for") {
			t.Errorf("holds %t, %v", l.Holds(), l.Err())
		}
		if err := l.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestATermThatIsKnownToBeLostEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{})
		first := lead(t, s, "a")
		rev := first.Elected
		over := errors.New("its key is gone")
		first.End(over)
		<-first.Done()
		if first.Holds() || !errors.Is(first.Err(), over) {
			t.Errorf("holds %t, %v", first.Holds(), first.Err())
		}
		if err := first.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		second := lead(t, s, "b")
		if second.Elected <= rev || int64(second.Elected) < int64(second.Epoch) {
			t.Errorf("elected at revision %d in epoch %d, after %d", second.Elected, second.Epoch, rev)
		}
		if err := errors.Join(second.Resign(t.Context()), s.Close()); err != nil {
			t.Error(err)
		}
	})
}

// away is a store that cannot be reached for a while.
type away struct {
	store.Store
	gone atomic.Bool
}

var errAway = errors.New("the store is away")

func (s *away) KeepAlive(ctx context.Context, id record.LeaseID) error {
	if s.gone.Load() {
		return errAway
	}
	return s.Store.KeepAlive(ctx, id)
}

func (s *away) Revoke(ctx context.Context, id record.LeaseID) error {
	if s.gone.Load() {
		return errAway
	}
	return s.Store.Revoke(ctx, id)
}

// TestALeaderThatLostTheStoreLeadsAgainAtOnce: its old key does not stand in its
// way, nor in that of those who waited behind it.
func TestALeaderThatLostTheStoreLeadsAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		real := mem.Open(mem.Options{})
		var terms []*store.Leadership
		for _, waits := range []bool{false, true} {
			s := &away{Store: real}
			first := store.NewCandidate(s, record.LeaderAddress{ID: "a"}, ttl)
			term, err := first.Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.gone.Store(true)
			<-term.Done()
			if err := term.Resign(t.Context()); !errors.Is(err, errAway) {
				t.Errorf("resigned: %v", err)
			}
			s.gone.Store(false)
			began := time.Now()
			next := first
			if waits { // a candidate of another process; the first one comes after it
				next = store.NewCandidate(real, record.LeaderAddress{ID: "b"}, ttl)
				go func() {
					<-time.NewTimer(100 * time.Millisecond).C
					if again, err := first.Campaign(t.Context()); err == nil {
						_ = again.Resign(t.Context())
					}
				}()
			}
			term, err = next.Campaign(t.Context())
			if took := time.Since(began); err != nil || took > time.Second { // of the bubble's clock
				t.Errorf("led again after %s: %v", took, err)
			}
			terms = append(terms, term)
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if terms[1].Epoch <= terms[0].Epoch {
			t.Errorf("epoch %d after %d", terms[1].Epoch, terms[0].Epoch)
		}
		synctest.Wait()
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	})
}
